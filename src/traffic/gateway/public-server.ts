import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import type { Config } from '../../platform/config/config.ts';
import { budgetConnections } from '../../platform/http/connection-budget.ts';
import { createConnectionLimits } from '../../platform/http/connection-limits.ts';
import { createTrustedPeer } from '../../platform/http/request-address.ts';
import { createHubServer, type HubServer } from '../../platform/http/server/http-server.ts';
import type { CertificateSource } from '../../platform/http/tls/certificate-source.ts';
import { followedPrograms, openFilesLimit } from '../../spawning/processes/open-files.ts';
import { isForwardAuth } from './verdict.ts';

/** A server for browsers within the limits of the configuration; the caller makes it listen. */
export function createPublicServer({
  config: { Hub, Proxy: proxyConfig },
  hubPath,
  certificates,
  log,
  request,
  upgrade,
}: {
  readonly config: {
    readonly Hub: Pick<Config['Hub'], 'trusted_proxies' | 'http2'>;
    readonly Proxy: Config['Proxy'];
  };
  /** Path of the hub's pages, a slash at its end. */
  readonly hubPath: string;
  /** With them it ends TLS. */
  readonly certificates: CertificateSource | undefined;
  readonly log: Logger;
  readonly request: (req: IncomingMessage, res: ServerResponse) => void;
  readonly upgrade: (req: IncomingMessage, socket: Socket, head: Buffer) => void;
}): HubServer {
  const budget = budgetConnections({
    configured: proxyConfig.max_connections,
    openFiles: openFilesLimit(),
  });
  if (budget.warning !== undefined)
    log.warn({}, `${budget.warning.problem}: ${budget.warning.fix}`);
  return createHubServer({
    config: proxyConfig,
    log,
    limits: createConnectionLimits({
      perAddress: proxyConfig.max_connections_per_address,
      inAll: budget.maxConnections,
      affordable: budget.affordable,
      programs: followedPrograms,
      isTrustedPeer: createTrustedPeer(Hub.trusted_proxies),
    }),
    certificates,
    http2: Hub.http2,
    maxRefusals: budget.maxRefusals,
    request,
    upgrade,
    takesUpgrade: (req) => !isForwardAuth(req, hubPath),
  });
}
