import { expect, test } from 'vitest';
import { createClientRegistry } from './client-registry.ts';
import { commandLineClient } from './command-line-client.ts';

const noServers = {
  isUser: async () => false,
  find: async () => undefined,
  allowedScopes: [],
};

const clients = createClientRegistry({
  services: () => [
    {
      name: 'wiki',
      clientId: 'service-wiki',
      redirectUris: ['/services/wiki/oauth_callback'],
      isPublic: false,
      allowedScopes: ['read:users'],
      skipsConsent: true,
    },
  ],
  servers: {
    isUser: async (userName) => ['a', 'a-b', 'a-new'].includes(userName),
    async find(userName, serverName) {
      if (userName !== 'a' && userName !== 'a-b') return undefined;
      if (userName === 'a-b' && serverName !== '') return undefined;
      return { id: 'id', prefix: `/user/${userName}/${serverName && `${serverName}/`}` };
    },
    allowedScopes: ['list:groups'],
  },
  originOf: (target) =>
    target.kind === 'service' ? 'https://hub.example' : `https://${target.userName}.example`,
});

test('knows services by their client id', async () => {
  expect(await clients.find('service-wiki')).toEqual({
    clientId: 'service-wiki',
    kind: 'service',
    name: 'wiki',
    origin: 'https://hub.example',
    redirectUris: ['/services/wiki/oauth_callback'],
    isPublic: false,
    allowedScopes: ['read:users'],
    accessScope: 'access:services!service=wiki',
    skipsConsent: true,
    identity: { clientId: 'service-wiki', service: 'wiki' },
  });
});

test('keeps a default server and a named server of similar names apart', async () => {
  expect(await clients.find('hub-user-a-b')).toMatchObject({
    kind: 'server',
    ownerUserName: 'a-b',
    origin: 'https://a-b.example',
    redirectUris: ['/user/a-b/oauth_callback'],
    isPublic: false,
    accessScope: 'access:servers!server=a-b/',
    allowedScopes: ['list:groups'],
    skipsConsent: false,
  });
  expect(await clients.find('hub-user-a-c')).toMatchObject({
    ownerUserName: 'a',
    redirectUris: ['/user/a/c/oauth_callback'],
    isPublic: false,
    accessScope: 'access:servers!server=a/c',
  });
});

test('never takes a named server for the default one of a user who has not started it yet', async () => {
  expect(await clients.find('hub-user-a-new')).toBeUndefined();
});

test('tells what a client may ask for without looking for its server', () => {
  expect(clients.allowedScopes('service-wiki')).toEqual(['read:users']);
  expect(clients.allowedScopes('hub-user-nobody')).toEqual(['list:groups']);
});

test.each(['service-other', 'hub-user-nobody', 'wiki', ''])(
  'does not know %j',
  async (clientId) => {
    expect(await clients.find(clientId)).toBeUndefined();
  },
);

test('calls a service by its title', async () => {
  const wiki = {
    name: 'wiki',
    clientId: 'service-wiki',
    redirectUris: ['/'],
    isPublic: false,
    allowedScopes: [],
  };
  const titled = createClientRegistry({
    services: () => [{ ...wiki, skipsConsent: false, info: { title: 'Research wiki' } }],
    servers: { isUser: async () => false, find: async () => undefined, allowedScopes: [] },
    originOf: () => 'https://hub.example',
  });
  expect((await titled.find('service-wiki'))?.name).toBe('Research wiki');
});

test('knows the command line where users may log in by it', async () => {
  const options = { services: () => [], servers: noServers, originOf: () => 'https://hub.example' };
  const { clientId } = commandLineClient;
  const withIt = createClientRegistry({ ...options, commandLine: commandLineClient });
  expect(await withIt.find(clientId)).toBe(commandLineClient);
  expect(await createClientRegistry(options).find(clientId)).toBeUndefined();
});
