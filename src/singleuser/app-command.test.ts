import { expect, test } from 'vitest';
import { appEnvironment, fillCommand } from './app-command.ts';

const onPort = { port: 4711, socketPath: undefined, url: 'http://127.0.0.1:4711' };

test('placeholders are filled in wherever they stand', () => {
  const command = ['app', '--bind=127.0.0.1:{port}', '--base={prefix}', '{other}'];
  expect(fillCommand(command, onPort, '/user/alice/')).toEqual([
    'app',
    '--bind=127.0.0.1:4711',
    '--base=/user/alice/',
    '{other}',
  ]);
  const onSocket = { port: undefined, socketPath: '/run/x.sock' };
  expect(fillCommand(['app', 'unix:{socket}'], onSocket, '/')).toEqual(['app', 'unix:/run/x.sock']);
});

test('a placeholder without a value is an error that names it', () => {
  expect(() => fillCommand(['{socket}'], onPort, '/')).toThrow(/\{socket\}/);
});

test('the app gets the variables of the hub, but not its token under any name', () => {
  const environment = {
    PATH: '/bin',
    HUB_USER: 'alice',
    HUB_API_TOKEN: 'hub_the-token',
    JUPYTERHUB_API_TOKEN: 'hub_the-token',
    SOME_HEADER: 'token hub_the-token',
    HUB_SERVICE_URL: 'http://127.0.0.1:8888/user/alice/',
  };
  expect(appEnvironment(environment, onPort, false)).toEqual({
    PATH: '/bin',
    HUB_USER: 'alice',
    HUB_SERVICE_URL: 'http://127.0.0.1:4711',
    PORT: '4711',
  });
  expect(appEnvironment(environment, onPort, true)).toMatchObject({
    HUB_API_TOKEN: 'hub_the-token',
    JUPYTERHUB_API_TOKEN: 'hub_the-token',
  });
});
