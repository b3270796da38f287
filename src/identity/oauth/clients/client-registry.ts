import {
  type AccessTarget,
  accessScopeFor,
  readServerClientId,
  type ServerName,
  serverClientId,
} from '../../../platform/protocol/client-id.ts';
import { serviceTitle } from '../../../platform/protocol/service-title.ts';
import type { SigningAlgorithm } from '../keys/signing-key-store.ts';
import type { Client, ClientAbilities } from './client.ts';
import type { ClientDocuments } from './client-documents.ts';

/** What a service of the configuration tells about itself as a client. */
export interface ServiceClientSource extends ClientAbilities {
  readonly name: string;
  /** What it tells of itself; `title` is its display name. */
  readonly info?: Readonly<Record<string, unknown>>;
  /** `service-<name>` unless configured otherwise. */
  readonly clientId: string;
  /** At least one; each is a path on the service's origin, or an absolute URI. */
  readonly redirectUris: readonly string[];
  readonly isPublic: boolean;
  readonly allowedScopes: readonly string[];
  readonly skipsConsent: boolean;
  readonly idTokenAlgorithm?: SigningAlgorithm | undefined;
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
  readonly id: string;
  /** Path of the server, with a slash at both ends. */
  readonly prefix: string;
}

type OriginOf = (target: AccessTarget) => string;

/** The registered clients (RFC 6749 §2). */
export interface ClientRegistry {
  find(clientId: string): Promise<Client | undefined>;
  /** `Client.allowedScopes` by the configuration in force, without checking whether a server exists. */
  allowedScopes(clientId: string): readonly string[];
}

/**
 * Nothing is stored in it: services come from the configuration of the moment, that of the command line is part of the program,
 * and a server's client id names the server.
 */
export function createClientRegistry({
  services,
  servers,
  agents,
  originOf,
  commandLine,
}: {
  readonly services: () => readonly ServiceClientSource[];
  readonly servers: ServerClientSource;
  readonly agents?: Pick<ClientDocuments, 'clientOf'>;
  /** Where browsers reach a service or server. */
  readonly originOf: OriginOf;
  /** What `hub login` is; undefined where users may not log in by it. */
  readonly commandLine?: Client | undefined;
}): ClientRegistry {
  const findService = (clientId: string) =>
    services().find((candidate) => candidate.clientId === clientId);

  return {
    allowedScopes: (clientId) => findService(clientId)?.allowedScopes ?? servers.allowedScopes,

    async find(clientId) {
      const service = findService(clientId);
      if (service !== undefined) return serviceClient(service, originOf);
      if (clientId === commandLine?.clientId) return commandLine;
      const agent = agents?.clientOf(clientId);
      if (agent !== undefined) return agent;
      const readings = readServerClientId(clientId);
      for (const { userName, serverName } of readings) {
        const server = await servers.find(userName, serverName);
        if (server !== undefined)
          return serverClient({ userName, serverName }, server, {
            allowedScopes: servers.allowedScopes,
            originOf,
          });
        // The id is that of their default server, also before they first start it.
        if (readings.length > 1 && (await servers.isUser(userName))) return undefined;
      }
      return undefined;
    },
  };
}

function serviceClient(service: ServiceClientSource, originOf: OriginOf): Client {
  const { name, clientId, redirectUris, isPublic, allowedScopes, skipsConsent } = service;
  const { idTokenAlgorithm } = service;
  const target = { kind: 'service', name } as const;
  return {
    clientId,
    kind: 'service',
    name: serviceTitle(service),
    origin: originOf(target),
    redirectUris,
    isPublic,
    allowedScopes,
    accessScope: accessScopeFor(target),
    skipsConsent,
    idTokenAlgorithm,
    grants: service.grants,
    mayOutliveLogin: service.mayOutliveLogin,
    requiresPush: service.requiresPush,
    jwks: service.jwks,
    jwksUri: service.jwksUri,
    logoutUrl: service.logoutUrl,
    postLogoutUris: service.postLogoutUris,
    // One that registered itself is in no network of the operator.
    hosts: service.info?.['registered_by'] === undefined ? undefined : 'public',
    identity: { clientId, service: name },
  };
}

function serverClient(
  { userName, serverName }: ServerName,
  { id, prefix }: ServerClient,
  {
    allowedScopes,
    originOf,
  }: { readonly allowedScopes: readonly string[]; readonly originOf: OriginOf },
): Client {
  const target = { kind: 'server', userName, serverName } as const;
  const clientId = serverClientId(userName, serverName);
  return {
    clientId,
    kind: 'server',
    name: serverName === '' ? userName : `${userName}/${serverName}`,
    origin: originOf(target),
    redirectUris: [`${prefix}oauth_callback`],
    isPublic: false,
    allowedScopes,
    accessScope: accessScopeFor(target),
    skipsConsent: false,
    ownerUserName: userName,
    serverId: id,
    identity: { clientId, server: { userName, serverName } },
  };
}
