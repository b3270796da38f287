import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { Secret } from '../../platform/config/secret.ts';
import { serviceSchema } from '../../platform/config/service-schema.ts';
import { type ServiceFacts, validateServices } from './validate-services.ts';

const keyOf = (modulusLength: number) =>
  generateKeyPairSync('rsa', { modulusLength }).publicKey.export({ format: 'jwk' });
const [smallKey, goodKey] = [1024, 2048].map(keyOf);

const facts: ServiceFacts = {
  maySwitchAccounts: true,
  userExists: (name) => name === 'ann',
  isDirectory: (path) => path === '/hub/good',
};
const hubUrls = ['http://127.0.0.1:8000/', 'http://127.0.0.1:8080'];

function problemsOf(
  entries: readonly Record<string, unknown>[],
  changed: Partial<ServiceFacts> = {},
) {
  const services = entries.map(({ api_token, ...entry }) => ({
    ...serviceSchema.omit({ api_token: true }).parse(entry),
    ...(api_token === undefined ? {} : { api_token: new Secret(String(api_token)) }),
  }));
  return validateServices({ services, directory: '/hub', hubUrls }, { ...facts, ...changed });
}

describe('validating services', () => {
  test('finds nothing wrong with good ones', () => {
    const good = [
      { name: 'a', url: 'http://127.0.0.1:9001', command: 'run a', user: 'ann', cwd: 'good' },
      { name: 'b', url: 'http://127.0.0.1:9002', api_token: 'long-enough-1', access: 'gateway' },
      { name: 'c', url: 'http://127.0.0.1:9002', api_token: 'long-enough-2' },
      { name: 'culler', command: ['cull', '--now'], environment: { A: 1 } },
    ];
    expect(problemsOf(good)).toEqual([]);
  });

  test.each([
    [
      'a secret of 8 characters',
      [{ name: 'a', api_token: '12345678' }],
      'api_token',
      /longer than 8/,
    ],
    [
      'a header that says who asks and is set by hand',
      [
        {
          name: 'a',
          url: 'http://h/',
          access: 'gateway',
          identity_headers: { user: 'X-Pupil' },
          headers: { request: { set: { 'x-pupil': 'root' } } },
        },
      ],
      'headers.request',
      /x-pupil is one of identity_headers/,
    ],
    [
      'a secret used twice',
      [
        { name: 'a', api_token: 'the-same-one' },
        { name: 'b', api_token: 'the-same-one' },
      ],
      'api_token',
      /unique, but is also that of the service "a" \(service "b"\)/,
    ],
    [
      'rules that no one applies',
      [{ name: 'a', url: 'http://h/', rules: [{ allow: 'nobody' }] }],
      'rules',
      /need "access": "gateway"/,
    ],
    [
      'a path stripped before an app that has one',
      [{ name: 'a', url: 'http://h/', strip_prefix: true }],
      'strip_prefix',
      /for apps that the gateway guards/,
    ],
    [
      'a Host of its own for an app that checks visitors',
      [{ name: 'a', url: 'http://h/', host: 'upstream' }],
      'host',
      /for apps that the gateway guards/,
    ],
    [
      'an identity where no one is asked for it',
      [{ name: 'a', url: 'http://h/', access: 'public', identity_headers: { user: 'X-Pupil' } }],
      'identity_headers',
      /need "access": "gateway"/,
    ],
    [
      'a rule that cannot match',
      [
        {
          name: 'a',
          url: 'http://h/',
          access: 'gateway',
          rules: [{ paths: ['/a/*'] }, { paths: ['/a/b'], allow: 'nobody' }],
        },
      ],
      'rules[1]',
      /can never match: rules\[0\]/,
    ],
    [
      'offline access without refresh tokens',
      [{ name: 'a', oauth_offline: true }],
      'oauth_offline',
      /needs "refresh"/,
    ],
    [
      'tokens of its own for a client that proves nothing',
      [{ name: 'a', oauth_public: true, oauth_grants: ['client_credentials'] }],
      'oauth_grants',
      /for a client with a secret/,
    ],
    [
      'a key that is too small',
      [{ name: 'a', oauth_jwks: { keys: [smallKey] } }],
      'oauth_jwks.keys[0]',
      /has 1,024 bits/,
    ],
    [
      'a private key',
      [{ name: 'a', oauth_jwks: { keys: [{ ...smallKey, d: 'AQAB' }] } }],
      'oauth_jwks.keys[0]',
      /is a private key/,
    ],
    [
      'a key that is none',
      [{ name: 'a', oauth_jwks: { keys: [{ kty: 'oct' }] } }],
      'oauth_jwks.keys[0]',
      /is no public key/,
    ],
    [
      'keys in two ways',
      [{ name: 'a', oauth_jwks: { keys: [goodKey] }, oauth_jwks_uri: 'https://a.example/jwks' }],
      'oauth_jwks_uri',
      /in place of/,
    ],
    [
      'keys of a client that can keep no secret',
      [{ name: 'a', oauth_public: true, oauth_jwks_uri: 'https://a.example/jwks' }],
      'oauth_public',
      /without keys/,
    ],
    ['an unknown user', [{ name: 'a', command: 'x', user: 'bob' }], 'user', /no user "bob".*"a"/],
    [
      'a cwd that is no directory',
      [{ name: 'a', command: 'x', cwd: 'bad' }],
      'cwd',
      /^\/hub\/bad is not/,
    ],
    [
      'environment on an external service',
      [{ name: 'a', environment: {} }],
      'environment',
      /managed/,
    ],
    ['user on an external service', [{ name: 'a', user: 'ann' }], 'user', /managed/],
    ['cwd on an external service', [{ name: 'a', cwd: 'good' }], 'cwd', /managed/],
    [
      'a password in the url',
      [{ name: 'a', url: 'http://u:p@h/' }],
      'url',
      /user name or password/,
    ],
    ['a query in the url', [{ name: 'a', url: 'http://h/?a' }], 'url', /query/],
    ['an empty command', [{ name: 'a', command: [''] }], 'command', /empty/],
    ['gateway access without a url', [{ name: 'a', access: 'gateway' }], 'access', /needs a url/],
    [
      'two managed services on one port, however its host is spelt',
      [
        { name: 'a', command: 'x', url: 'http://127.0.0.1:9000' },
        { name: 'b', command: 'x', url: 'http://localhost:9000/' },
      ],
      'url',
      /same address and port as the service "a" \(service "b"\)/,
    ],
    [
      'a managed service on the port of an external one',
      [
        { name: 'a', url: 'http://127.0.0.1:9000' },
        { name: 'b', command: 'x', url: 'http://localhost:9000/' },
      ],
      'url',
      /same address and port as the service "a" \(service "b"\)/,
    ],
    [
      'an external service on the port of a managed one',
      [
        { name: 'a', command: 'x', url: 'http://127.0.0.1:9000' },
        { name: 'b', url: 'http://localhost:9000/' },
      ],
      'url',
      /same address and port as the service "a" \(service "b"\)/,
    ],
    [
      "a managed service on the hub's own port",
      [{ name: 'a', command: 'x', url: 'http://localhost:8080' }],
      'url',
      /same address and port as the hub itself/,
    ],
    [
      'an OAuth client id used twice',
      [{ name: 'a' }, { name: 'b', oauth_client_id: 'service-a' }],
      'oauth_client_id',
      /client id service-a is used already by the service "a"/,
    ],
  ])('refuses %s', (_what, entries, field, message) => {
    const problems = problemsOf(entries);
    expect(problems).toHaveLength(1);
    expect(problems[0]?.path).toBe(`Hub.services[${entries.length - 1}].${field}`);
    expect(problems[0]?.message).toMatch(message);
  });

  test('leaves to another proxy what it alone can limit', () => {
    const place = { spec: 'a.example/', host: 'a.example', prefix: '/', isBehindProxy: true };
    const limits = { deny_addresses: ['192.0.2.1'], max_body_size: '1K' };
    const service = serviceSchema
      .omit({ api_token: true })
      .parse({ name: 'a', access: 'gateway', limits });
    const services = [{ ...service, place: { ...place, origin: undefined } }];
    expect(validateServices({ services, directory: '/hub', hubUrls }, facts)).toMatchObject([
      { path: 'Proxy.extra_routes.a.example/.limits.max_body_size' },
    ]);
  });

  test('refuses a user when the hub is not root', () => {
    const problems = problemsOf([{ name: 'a', command: 'x', user: 'ann' }], {
      maySwitchAccounts: false,
    });
    expect(problems).toEqual([
      {
        path: 'Hub.services[0].user',
        message:
          'needs a hub that may switch accounts, as root or with CAP_SETUID and CAP_SETGID (service "a")',
      },
    ]);
  });

  test('refuses a name used twice', () => {
    const paths = problemsOf([{ name: 'a' }, { name: 'a' }]).map(({ message }) => message);
    expect(paths[0]).toBe('is used already by the service "a" (service "a")');
  });

  test('tells all problems at once, and never a secret', () => {
    const problems = problemsOf([
      { name: 'a', api_token: 'short', cwd: 'x' },
      { name: 'b', api_token: 'short', command: 'x', cwd: 'bad' },
    ]);
    expect(problems.map(({ path }) => path)).toEqual([
      'Hub.services[0].api_token',
      'Hub.services[0].cwd',
      'Hub.services[1].api_token',
      'Hub.services[1].cwd',
      'Hub.services[1].api_token',
    ]);
    expect(JSON.stringify(problems)).not.toContain('short');
  });
});
