import type { SpawnRequest } from '../../src/plugin/plugin.ts';

/** A request as a hub would make it for a plain server of the user `ann`; anything of it can be replaced. */
export function createSpawnRequest(changed: Partial<SpawnRequest> = {}): SpawnRequest {
  return {
    serverId: 'server-1',
    userName: 'ann',
    serverName: '',
    objectName: 'ann',
    accountName: 'ann',
    groups: [],
    profileOptions: {},
    command: ['true'],
    environment: {},
    workingDirectory: '/tmp',
    limits: {},
    guarantees: {},
    volumes: [],
    ip: '127.0.0.1',
    socket: false,
    userOptions: {},
    authStates: {},
    signal: new AbortController().signal,
    stopGraceMs: 5_000,
    environmentForUrl: (url) => ({ HUB_SERVICE_URL: url }),
    onOutput: () => undefined,
    onProgress: () => undefined,
    awaitAddress: () => Promise.reject(new Error('This server tells no address.')),
    keepState: async () => undefined,
    isOurs: () => true,
    ...changed,
  };
}
