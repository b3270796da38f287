import { describe, expect, test } from 'vitest';
import { HubAuth } from './hub-auth.ts';
import { HubOAuth } from './hub-oauth.ts';

const environment = {
  HUB_SERVICE_NAME: 'whoami',
  HUB_API_TOKEN: 'a-long-enough-secret',
  HUB_API_URL: 'http://127.0.0.1:9999/hub/api',
  HUB_BASE_URL: 'https://hub.example.org/',
  HUB_SERVICE_PREFIX: '/services/whoami/',
  HUB_OAUTH_SCOPES: '["access:services!service=whoami"]',
};

test('everything comes from the variables the hub passes', () => {
  const hubAuth = new HubOAuth({ environment });
  expect(hubAuth).toMatchObject({
    api_token: 'a-long-enough-secret',
    api_url: 'http://127.0.0.1:9999/hub/api',
    service_prefix: '/services/whoami/',
    hub_base_url: 'https://hub.example.org/',
    oauth_scopes: ['access:services!service=whoami'],
    cache_max_age: 300,
    cookie_cache_max_age: 300,
    oauth_client_id: 'service-whoami',
    oauth_redirect_uri: '/services/whoami/oauth_callback',
    state_cookie_name: 'service-whoami-oauth-state',
    cookie_name: 'service-whoami',
    hub_scopes: undefined,
  });
});

test('what the code says goes before the variables', () => {
  const hubAuth = new HubOAuth({
    environment,
    api_token: 'another-long-secret',
    oauth_scopes: ['custom:x:y'],
    oauth_client_id: 'service-other',
    state_cookie_name: 'my-state',
    cookie_cache_max_age: 7,
  });
  expect(hubAuth.api_token).toBe('another-long-secret');
  expect(hubAuth.oauth_scopes).toEqual(['custom:x:y']);
  expect(hubAuth.cookie_name).toBe('service-other');
  expect(hubAuth.state_cookie_name).toBe('my-state');
  expect(hubAuth.cache_max_age).toBe(7);
});

test('cookie_cache_max_age and cache_max_age are one value', () => {
  const hubAuth = new HubAuth({ environment });
  hubAuth.cookie_cache_max_age = 12;
  expect(hubAuth.cache_max_age).toBe(12);
});

test('the documented defaults hold where only name and token are known', () => {
  const hubAuth = new HubAuth({ environment: {}, service_name: 'x', api_token: 'long-secret-x' });
  expect(hubAuth.api_url).toBe('http://127.0.0.1:8080/hub/api');
  expect(hubAuth.service_prefix).toBe('/services/x/');
  expect(hubAuth.oauth_scopes).toEqual(['access:services!service=x']);
});

test('the client of a user server takes its id from HUB_CLIENT_ID', () => {
  const hubAuth = new HubOAuth({
    environment: {
      HUB_API_TOKEN: 'long-secret-x',
      HUB_CLIENT_ID: 'hub-user-alice-lab',
      HUB_SERVICE_PREFIX: '/user/alice/lab/',
      HUB_OAUTH_SCOPES: '["access:servers!server=alice/lab"]',
    },
  });
  expect(hubAuth.cookie_name).toBe('hub-user-alice-lab');
  expect(hubAuth.oauth_redirect_uri).toBe('/user/alice/lab/oauth_callback');
});

describe('a missing or wrong value names the option and the variable', () => {
  test.for([
    [{ HUB_API_TOKEN: undefined }, /api_token.*HUB_API_TOKEN/],
    [{ HUB_API_TOKEN: '' }, /api_token.*HUB_API_TOKEN/],
    [{ HUB_SERVICE_PREFIX: '', HUB_SERVICE_NAME: '' }, /service_prefix.*HUB_SERVICE_PREFIX/],
    [{ HUB_OAUTH_SCOPES: '', HUB_SERVICE_NAME: '' }, /oauth_scopes.*HUB_OAUTH_SCOPES/],
    [{ HUB_SERVICE_NAME: '' }, /oauth_client_id.*HUB_CLIENT_ID/],
    [{ HUB_OAUTH_SCOPES: 'access:services' }, /oauth_scopes.*HUB_OAUTH_SCOPES.*JSON/],
    [{ HUB_OAUTH_SCOPES: '{"a":1}' }, /oauth_scopes.*HUB_OAUTH_SCOPES.*JSON/],
    [{ HUB_API_URL: 'hub/api' }, /api_url.*HUB_API_URL/],
    [{ HUB_SERVICE_PREFIX: '//evil.example/' }, /service_prefix.*HUB_SERVICE_PREFIX/],
    [{ HUB_SERVICE_PREFIX: '/x/; Domain=evil' }, /service_prefix.*HUB_SERVICE_PREFIX/],
    [{ HUB_BASE_URL: 'javascript:alert(1)' }, /hub_base_url.*HUB_BASE_URL/],
  ] as const)('%o', ([override, message]) => {
    const create = () => new HubOAuth({ environment: { ...environment, ...override } });
    expect(create).toThrow(TypeError);
    expect(create).toThrow(message);
  });
});
