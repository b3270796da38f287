import { describe, expect, test } from 'vitest';
import { childEnvironment, prefixVariables } from './child-environment.ts';

const variables = {
  API_TOKEN: 'token',
  BASE_URL: 'https://hub.example/team/',
  SERVICE_URL: undefined,
};
const base = { variables, prefixes: ['HUB'], basePath: '/team/' };

describe('the environment of a child', () => {
  test('takes only what is allowed from the hub, and every locale category', () => {
    const environment = childEnvironment({
      ...base,
      inherited: {
        PATH: '/usr/bin',
        LC_CTYPE: 'C.UTF-8',
        HUB_COOKIE_SECRET: 'no',
        OIDC_CLIENT_SECRET: 'no',
        NODE_OPTIONS: '--inspect',
      },
    });
    expect(environment).toEqual({
      PATH: '/usr/bin',
      LC_CTYPE: 'C.UTF-8',
      HUB_API_TOKEN: 'token',
      HUB_BASE_URL: 'https://hub.example/team/',
    });
  });

  test('what the configuration says wins', () => {
    const environment = childEnvironment({
      ...base,
      inherited: { PATH: '/usr/bin' },
      extra: { PATH: '/opt/bin', HUB_API_TOKEN: 'mine' },
    });
    expect(environment['PATH']).toBe('/opt/bin');
    expect(environment['HUB_API_TOKEN']).toBe('mine');
  });

  test('an account brings its own home and name', () => {
    const user = {
      name: 'ann',
      userId: 7,
      groupId: 7,
      groupIds: [7],
      home: '/home/ann',
      shell: '/bin/sh',
    };
    const inherited = { HOME: '/root', USER: 'root', LOGNAME: 'root', SHELL: '/bin/bash' };
    expect(childEnvironment({ ...base, variables: {}, inherited, user })).toEqual({
      HOME: '/home/ann',
      USER: 'ann',
      LOGNAME: 'ann',
      SHELL: '/bin/sh',
    });
  });

  test('passes every variable under every prefix; BASE_URL is a path for JupyterHub software', () => {
    expect(prefixVariables(variables, ['HUB', 'JUPYTERHUB'], '/team/')).toEqual({
      HUB_API_TOKEN: 'token',
      HUB_BASE_URL: 'https://hub.example/team/',
      JUPYTERHUB_API_TOKEN: 'token',
      JUPYTERHUB_BASE_URL: '/team/',
    });
  });
});
