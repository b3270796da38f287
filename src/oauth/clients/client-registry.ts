import { accessScopeFor } from '../../protocol/access-scope.ts';
import { readServerClientId, type ServerName, serverClientId } from '../../protocol/client-id.ts';
import type { Client } from './client.ts';

/** What a service of the configuration tells about itself as a client. */
export interface ServiceClientSource {
  readonly name: string;
  /** `service-<name>` unless configured otherwise. */
  readonly clientId: string;
  /** A path on the public origin, or an absolute URI. */
  readonly redirectUri: string;
  readonly allowedScopes: readonly string[];
  readonly skipsConsent: boolean;
}

/** Looks up users' servers that may be clients. */
export interface ServerClientSource {
  /** Whether there is a user of that name. */
  isUser(userName: string): Promise<boolean>;
  find(userName: string, serverName: string): Promise<ServerClient | undefined>;
  /** What every server may ask a visitor for, beside identity and access to itself. */
  readonly allowedScopes: readonly string[];
}

/** What a user's server tells about itself as a client. */
export interface ServerClient {
  /** Path of the server on the public origin, with a slash at both ends. */
  readonly prefix: string;
}

/** The registered clients (RFC 6749 §2). */
export interface ClientRegistry {
  find(clientId: string): Promise<Client | undefined>;
  /** `Client.allowedScopes` by the configuration in force, without checking whether a server exists. */
  allowedScopes(clientId: string): readonly string[];
}

/**
 * Nothing is stored in it: services come from the configuration of the moment,
 * and a server's client id names the server.
 */
export function createClientRegistry({
  services,
  servers,
}: {
  readonly services: () => readonly ServiceClientSource[];
  readonly servers: ServerClientSource;
}): ClientRegistry {
  const findService = (clientId: string) =>
    services().find((candidate) => candidate.clientId === clientId);

  return {
    allowedScopes: (clientId) => findService(clientId)?.allowedScopes ?? servers.allowedScopes,

    async find(clientId) {
      const service = findService(clientId);
      if (service !== undefined) return serviceClient(service);
      const readings = readServerClientId(clientId);
      for (const { userName, serverName } of readings) {
        const server = await servers.find(userName, serverName);
        if (server !== undefined)
          return serverClient({ userName, serverName }, server, servers.allowedScopes);
        // The id is that of their default server, also before they first start it.
        if (readings.length > 1 && (await servers.isUser(userName))) return undefined;
      }
      return undefined;
    },
  };
}

function serviceClient(service: ServiceClientSource): Client {
  const { name, clientId, redirectUri, allowedScopes, skipsConsent } = service;
  return {
    clientId,
    kind: 'service',
    name,
    redirectUri,
    allowedScopes,
    accessScope: accessScopeFor({ kind: 'service', name }),
    skipsConsent,
    identity: { clientId, service: name },
  };
}

function serverClient(
  { userName, serverName }: ServerName,
  { prefix }: ServerClient,
  allowedScopes: readonly string[],
): Client {
  const clientId = serverClientId(userName, serverName);
  return {
    clientId,
    kind: 'server',
    name: serverName === '' ? userName : `${userName}/${serverName}`,
    redirectUri: `${prefix}oauth_callback`,
    allowedScopes,
    accessScope: accessScopeFor({ kind: 'server', userName, serverName }),
    skipsConsent: false,
    ownerUserName: userName,
    identity: { clientId, server: { userName, serverName } },
  };
}
