import type { z } from 'zod';
import type { ServiceConfig } from '../../platform/config/config.ts';
import { serviceSchema } from '../../platform/config/service-schema.ts';
import { versionOf } from '../../platform/crypto/version.ts';
import { clientIdOf } from './service.ts';

/** A service that was added at run time. */
export interface RuntimeService {
  /** Without a token. */
  readonly definition: ServiceConfig;
  /** Of an external service; a managed one is given a token by each hub that runs it. */
  readonly tokenHash: string | undefined;
}

/** What a service says of itself, as in `Hub.services`, but for its name and its token. */
export const serviceDefinition = serviceSchema.omit({ name: true, api_token: true });

/** Characters of a token. */
export const maxSecretLength = 1_000;

export type ServiceDefinition = z.output<typeof serviceDefinition>;

/** Whether the configuration has the name or the client id of a service. */
export function isDisplaced(
  definition: ServiceConfig,
  configured: readonly ServiceConfig[],
): boolean {
  return configured.some(
    (other) => other.name === definition.name || clientIdOf(other) === clientIdOf(definition),
  );
}

/** Whether visitors or logins can be led to it. */
export function isReachable(definition: ServiceConfig | undefined): boolean {
  const { url, oauth_redirect_uri, oauth_redirect_uris = [] } = definition ?? {};
  return [url, oauth_redirect_uri, ...oauth_redirect_uris].some((uri) => uri !== undefined);
}

/** Tells whether a service has changed: two with the same version are the same. */
export function versionOfService({ definition, tokenHash }: RuntimeService): string {
  const { environment, ...rest } = definition;
  return versionOf([rest, environment ?? null, tokenHash ?? null]);
}
