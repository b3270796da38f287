import { describe, expect, test } from 'vitest';
import { Secret } from '../../platform/config/secret.ts';
import { serviceSchema } from '../../platform/config/service-schema.ts';
import { createOrigins } from '../../platform/http/origins.ts';
import { createService } from './service.ts';
import { serviceEnvironment } from './service-environment.ts';

function environmentOf(
  entry: Record<string, unknown>,
  prefixes: readonly string[],
  path = '/',
  subdomainHost?: URL,
) {
  const { api_token: _, ...config } = serviceSchema.parse({
    name: 'board',
    command: 'x',
    ...entry,
  });
  const context = { apiToken: new Secret('hub_token'), basePath: path, directory: '/hub' };
  return serviceEnvironment(createService(config, context), {
    apiUrl: `http://127.0.0.1:8080${path}hub/api`,
    origins: createOrigins({
      publicUrl: new URL(path, 'https://hub.example:8443'),
      basePath: path,
      subdomainHost,
    }),
    basePath: path,
    prefixes,
    inherited: { PATH: '/bin', HUB_COOKIE_SECRET: 'no', DATABASE_PASSWORD: 'no' },
    user: undefined,
  });
}

describe('the environment of a managed service', () => {
  test("holds the specification's variables and those of JupyterHub, and no secret of the hub", () => {
    expect(environmentOf({ url: 'http://127.0.0.1:9000' }, ['HUB'])).toEqual({
      PATH: '/bin',
      HUB_SERVICE_NAME: 'board',
      HUB_API_TOKEN: 'hub_token',
      HUB_API_URL: 'http://127.0.0.1:8080/hub/api',
      HUB_BASE_URL: 'https://hub.example:8443/',
      HUB_SERVICE_PREFIX: '/services/board/',
      HUB_SERVICE_URL: 'http://127.0.0.1:9000',
      HUB_OAUTH_SCOPES: '["access:services","access:services!service=board"]',
      HUB_OAUTH_ACCESS_SCOPES: '["access:services","access:services!service=board"]',
      HUB_OAUTH_CLIENT_ALLOWED_SCOPES: '[]',
      HUB_OAUTH_CALLBACK_URL: '/services/board/oauth_callback',
      HUB_CLIENT_ID: 'service-board',
      HUB_HOST: '',
      HUB_PUBLIC_URL: 'https://hub.example:8443/services/board/',
      HUB_PUBLIC_HUB_URL: 'https://hub.example:8443/hub/',
      HUB_COOKIE_HOST_PREFIX_ENABLED: '0',
    });
  });

  test('passes each variable under every prefix; JUPYTERHUB_BASE_URL is a path', () => {
    const environment = environmentOf({}, ['HUB', 'JUPYTERHUB'], '/team/');
    expect(environment['HUB_BASE_URL']).toBe('https://hub.example:8443/team/');
    expect(environment['JUPYTERHUB_BASE_URL']).toBe('/team/');
    expect(environment['JUPYTERHUB_SERVICE_PREFIX']).toBe('/team/services/board/');
    expect(environment['JUPYTERHUB_API_TOKEN']).toBe('hub_token');
    expect(environment['JUPYTERHUB_API_URL']).toBe('http://127.0.0.1:8080/team/hub/api');
  });

  test('leaves out the url of a service without one', () => {
    const environment = environmentOf({}, ['HUB']);
    expect(environment).not.toHaveProperty('HUB_SERVICE_URL');
    expect(environment).not.toHaveProperty('HUB_PUBLIC_URL');
  });

  test('the environment of the configuration wins', () => {
    const environment = environmentOf({ environment: { PATH: '/opt', HUB_HOST: 'x', N: 1 } }, [
      'HUB',
    ]);
    expect(environment).toMatchObject({ PATH: '/opt', HUB_HOST: 'x', N: '1' });
  });

  test('a redirect URI on the origin of the hub is passed on as a path, to make a route of', () => {
    const callback = 'https://hub.example:8443/team/services/board/cb?x=1';
    const environment = environmentOf(
      { oauth_redirect_uri: callback },
      ['HUB', 'JUPYTERHUB'],
      '/team/',
    );
    expect(environment['HUB_OAUTH_CALLBACK_URL']).toBe('/team/services/board/cb?x=1');
    expect(environment['JUPYTERHUB_OAUTH_CALLBACK_URL']).toBe('/team/services/board/cb?x=1');
  });

  test('a service with an origin of its own is told both', () => {
    const environment = environmentOf(
      { url: 'http://127.0.0.1:9000' },
      ['HUB'],
      '/',
      new URL('https://apps.example'),
    );
    expect(environment).toMatchObject({
      HUB_HOST: 'https://hub.example:8443',
      HUB_BASE_URL: 'https://hub.example:8443/',
      HUB_PUBLIC_URL: 'https://board--service.apps.example/services/board/',
      HUB_OAUTH_CALLBACK_URL: 'https://board--service.apps.example/services/board/oauth_callback',
      HUB_COOKIE_HOST_PREFIX_ENABLED: '1',
    });
  });

  test('what the configuration sets about OAuth is passed on', () => {
    const environment = environmentOf(
      {
        oauth_client_id: 'service-x',
        oauth_redirect_uri: 'https://x.example/cb',
        oauth_client_allowed_scopes: ['self'],
      },
      ['HUB'],
    );
    expect(environment).toMatchObject({
      HUB_CLIENT_ID: 'service-x',
      HUB_OAUTH_CALLBACK_URL: 'https://x.example/cb',
      HUB_OAUTH_CLIENT_ALLOWED_SCOPES: '["self"]',
    });
  });
});
