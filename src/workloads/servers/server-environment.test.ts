import { expect, test } from 'vitest';
import { createOrigins } from '../../platform/http/origins.ts';
import { addressEnvironment, serverEnvironment } from './server-environment.ts';

const options = {
  userName: 'ann@x',
  serverName: 'lab',
  clientId: 'hub-user-ann%40x-lab',
  apiToken: 'secret-of-the-server',
  apiUrl: 'http://127.0.0.1:8080/team/hub/api',
  origins: createOrigins({
    publicUrl: new URL('https://hub.example/team/'),
    basePath: '/team/',
  }),
  basePath: '/team/',
  prefix: '/team/user/ann@x/lab/',
  defaultUrl: '/tree',
  allowedScopes: ['read:users'],
  memoryLimitBytes: 1024,
  cpuLimitCores: 1.5,
  prefixes: ['HUB'],
  inherited: {
    PATH: '/bin',
    LC_TIME: 'C',
    HUB_COOKIE_SECRET: 'x',
    AWS_SECRET: 'y',
    LANG: undefined,
  },
  keep: ['PATH', 'LANG'],
  extra: { A: '1' },
};

test('a server is told everything of the table, and nothing of the hub beside it', () => {
  const access = JSON.stringify([
    'access:servers!server=ann@x/lab',
    'access:servers!user=ann@x',
    'access:servers',
  ]);
  expect(serverEnvironment(options)).toEqual({
    PATH: '/bin',
    LC_TIME: 'C',
    USER: 'ann@x',
    LOGNAME: 'ann@x',
    MEM_LIMIT: '1024',
    CPU_LIMIT: '1.5',
    HUB_API_TOKEN: 'secret-of-the-server',
    HUB_API_URL: 'http://127.0.0.1:8080/team/hub/api',
    HUB_ACTIVITY_URL: 'http://127.0.0.1:8080/team/hub/api/users/ann%40x/activity',
    HUB_ADDRESS_URL: 'http://127.0.0.1:8080/team/hub/api/users/ann%40x/servers/lab/address',
    HUB_BASE_URL: 'https://hub.example/team/',
    HUB_HOST: '',
    HUB_USER: 'ann@x',
    HUB_SERVER_NAME: 'lab',
    HUB_CLIENT_ID: 'hub-user-ann%40x-lab',
    HUB_SERVICE_PREFIX: '/team/user/ann@x/lab/',
    HUB_OAUTH_CALLBACK_URL: '/team/user/ann@x/lab/oauth_callback',
    HUB_OAUTH_SCOPES: access,
    HUB_OAUTH_ACCESS_SCOPES: access,
    HUB_OAUTH_CLIENT_ALLOWED_SCOPES: '["read:users"]',
    HUB_COOKIE_HOST_PREFIX_ENABLED: '0',
    HUB_PUBLIC_URL: 'https://hub.example/team/user/ann@x/lab/',
    HUB_PUBLIC_HUB_URL: 'https://hub.example/team/hub/',
    HUB_DEFAULT_URL: '/tree',
    A: '1',
  });
});

test('software written for JupyterHub finds the same under its own names, its base URL as a path', () => {
  const environment = serverEnvironment({ ...options, prefixes: ['HUB', 'JUPYTERHUB'] });
  expect(environment).toMatchObject({
    JUPYTERHUB_API_TOKEN: 'secret-of-the-server',
    JUPYTERHUB_BASE_URL: '/team/',
    HUB_BASE_URL: 'https://hub.example/team/',
  });
  expect(addressEnvironment('http://127.0.0.1:9', ['HUB', 'JUPYTERHUB'])).toEqual({
    HUB_SERVICE_URL: 'http://127.0.0.1:9',
    JUPYTERHUB_SERVICE_URL: 'http://127.0.0.1:9',
  });
});

test('a server with an origin of its own is told both, and to keep its cookies from its neighbours', () => {
  const origins = createOrigins({
    publicUrl: new URL('https://hub.example/team/'),
    basePath: '/team/',
    subdomainHost: new URL('https://servers.example:8443'),
  });
  const environment = serverEnvironment({ ...options, origins, prefixes: ['HUB', 'JUPYTERHUB'] });
  const own = /^https:\/\/u-ann-x--[a-z2-7]{26}\.servers\.example:8443\/team\/user\/ann@x\/lab\//;
  for (const prefix of ['HUB', 'JUPYTERHUB']) {
    expect(environment[`${prefix}_HOST`]).toBe('https://hub.example');
    expect(environment[`${prefix}_PUBLIC_URL`]).toMatch(own);
    expect(environment[`${prefix}_OAUTH_CALLBACK_URL`]).toBe(
      `${environment[`${prefix}_PUBLIC_URL`]}oauth_callback`,
    );
    expect(environment[`${prefix}_PUBLIC_HUB_URL`]).toBe('https://hub.example/team/hub/');
    expect(environment[`${prefix}_COOKIE_HOST_PREFIX_ENABLED`]).toBe('1');
  }
  expect(environment['HUB_BASE_URL']).toBe('https://hub.example/team/');
});

test('what is not set is not passed, and what is configured wins', () => {
  const environment = serverEnvironment({
    ...options,
    defaultUrl: '',
    memoryLimitBytes: undefined,
    cpuLimitCores: undefined,
    extra: { PATH: '/opt/bin', HUB_HOST: 'https://hub.example' },
  });
  expect(environment).not.toHaveProperty('HUB_DEFAULT_URL');
  expect(environment).not.toHaveProperty('MEM_LIMIT');
  expect(environment).not.toHaveProperty('CPU_LIMIT');
  expect(environment).toMatchObject({ PATH: '/opt/bin', HUB_HOST: 'https://hub.example' });
});
