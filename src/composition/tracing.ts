import type { Logger } from 'pino';
import type { Config } from '../platform/config/config.ts';
import type { Secret } from '../platform/config/secret.ts';
import type { MessageHandlers } from '../platform/http/server/serve-messages.ts';
import type { Tracing } from '../platform/tracing/tracing.ts';

/** What puts requests into traces; undefined without `Hub.tracing`, and then none of it is loaded. */
export async function openTracing(deps: {
  readonly config: { readonly Hub: Pick<Config['Hub'], 'tracing'> };
  readonly gatewaySecrets: readonly Secret[];
  readonly instanceName: string;
  readonly version: string;
  readonly log: Logger;
  readonly disposables: AsyncDisposableStack;
}): Promise<Tracing | undefined> {
  const { config, gatewaySecrets: secrets, disposables } = deps;
  if (config.Hub.tracing === undefined) return undefined;
  const { createTracing } = await import('../platform/tracing/tracing.ts');
  return disposables.use(createTracing({ ...deps, config: config.Hub.tracing, secrets }));
}

type Handlers = Required<Pick<MessageHandlers, 'request'>> & {
  readonly upgrade: NonNullable<MessageHandlers['upgrade']>;
};

/** The same, in traces where there are any. */
export function inTraces(tracing: Tracing | undefined, { request, upgrade }: Handlers): Handlers {
  if (tracing === undefined) return { request, upgrade };
  return {
    request: (req, res) => tracing.request(req, res, () => request(req, res)),
    upgrade: (req, socket, head) => tracing.upgrade(req, socket, () => upgrade(req, socket, head)),
  };
}
