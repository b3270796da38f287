import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createClientDocuments } from '../../src/identity/oauth/clients/client-documents.ts';
import { createFailureLimit } from '../../src/identity/oauth/clients/failure-limit.ts';
import { mayBePublic } from '../../src/platform/addresses/public-lookup.ts';
import { memorySpace } from '../support/memory-space.ts';
import { requires } from '../support/requires.ts';
import { selfSigned } from '../support/tls-front.ts';
import {
  type AuthorizationServerHarness,
  errorOf,
  pkcePair,
  responseParameters,
  type ShownConsent,
  startAuthorizationServer,
} from './harness.ts';

describe.skipIf(!requires('openssl'))('a client id that is the URL of a document', () => {
  const { key, cert } = requires('openssl') ? selfSigned(['localhost']) : {};
  let asked = 0;
  let answer: (res: ServerResponse) => void;
  const site = createServer({ key, cert }, (_req, res) => {
    asked += 1;
    answer(res);
  });
  let clientId: string;
  beforeAll(async () => {
    const known = getCACertificates('default');
    setDefaultCACertificates([...known, String(cert)]);
    await once(site.listen(0, '127.0.0.1'), 'listening');
    return () => setDefaultCACertificates(known);
  });
  afterAll(() => {
    site.close();
  });

  let hub: AuthorizationServerHarness;
  let alice: Awaited<ReturnType<AuthorizationServerHarness['login']>>;
  let resource: string;
  const pkce = pkcePair();
  beforeEach(async () => {
    asked = 0;
    clientId = `https://localhost:${(site.address() as AddressInfo).port}/agent.json`;
    answer = document();
    hub = await startAuthorizationServer({ documentHosts: 'any' });
    alice = await hub.login('alice');
    resource = `${hub.origin}/user/alice/mcp`;
    return () => hub[Symbol.asyncDispose]();
  });

  function document(more: object = {}) {
    const redirect_uris = ['http://127.0.0.1/callback', 'https://agents.example/callback'];
    const whole = { client_id: clientId, client_name: 'Notebook agent', redirect_uris, ...more };
    return (res: ServerResponse) => void res.end(JSON.stringify(whole));
  }
  const request = (more: Record<string, string> = {}) => ({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: 'http://127.0.0.1:4711/callback',
    code_challenge: pkce.challenge,
    code_challenge_method: 'S256',
    resource,
    ...more,
  });
  const statusOf = async (more: Record<string, string> = {}) =>
    (await hub.authorize(request(more), alice)).status;

  test('logs in to one server, after its user saw who asks, of which host and for which server', async () => {
    const shown = await hub.authorize(request(), alice);
    expect(((await shown.json()) as ShownConsent).view).toMatchObject({
      clientName: 'Notebook agent',
      agent: { host: new URL(clientId).host, resourceKind: 'server', resourceTitle: 'alice' },
      redirectHost: '127.0.0.1:4711',
    });
    const code = responseParameters(await hub.decide(request(), alice)).get('code') ?? '';
    const { redirect_uri } = request();
    const form = { client_id: clientId, code, redirect_uri, code_verifier: pkce.verifier };
    const granted = await hub.post('token', { grant_type: 'authorization_code', ...form });
    const tokens = (await granted.json()) as { access_token: string; refresh_token: string };
    const caller = await hub.tokenVerifier.verify(tokens.access_token);
    expect([...(caller?.scopes ?? [])].toSorted()).toEqual([
      'access:servers!server=alice/',
      'read:users:groups!user=alice',
      'read:users:name!user=alice',
    ]);
    const { refresh_token } = tokens;
    const refresh = { grant_type: 'refresh_token', client_id: clientId, refresh_token };
    expect((await hub.post('token', refresh)).status).toBe(200);
    // What is granted is no use without the right, and the document is not needed for it.
    expect(asked).toBe(1);
  });

  test('asks for what it wants to use, and only for what its user may use', async () => {
    const { resource: _, ...without } = request();
    const refused = await hub.authorize(without, alice);
    expect(responseParameters(refused).get('error')).toBe('invalid_target');
    expect(await statusOf({ resource: `${hub.origin}/user/bob/` })).toBe(403);
    const more = await hub.authorize(request({ scope: 'read:users' }), alice);
    expect(responseParameters(more).get('error')).toBe('invalid_scope');
    const plain = await hub.authorize({ ...without, resource, code_challenge: '' }, alice);
    expect(responseParameters(plain).get('error')).toBe('invalid_request');
  });

  test.each<[string, (res: ServerResponse) => void]>([
    ['is the document of another', (res) => document({ client_id: `${clientId}x` })(res)],
    ['has no redirect URI', (res) => document({ redirect_uris: [] })(res)],
    ['has a script as one', (res) => document({ redirect_uris: ['javascript:alert(1)'] })(res)],
    [
      'wants to have a secret',
      (res) => document({ token_endpoint_auth_method: 'client_secret_post' })(res),
    ],
    ['is too large', (res) => document({ filler: 'x'.repeat(6_000) })(res)],
    ['is no JSON', (res) => void res.end('<html>')],
    ['leads elsewhere', (res) => void res.writeHead(302, { location: '/other' }).end()],
    ['is missing', (res) => void res.writeHead(404).end()],
  ])(
    'is refused where the document %s, on a page, and not read again at once',
    async (_what, send) => {
      answer = send;
      expect(await statusOf()).toBe(400);
      answer = document();
      expect(await statusOf()).toBe(400);
      expect(asked).toBe(1);
    },
  );

  test('is refused with a redirect URI that the document does not name', async () => {
    expect(await statusOf({ redirect_uri: 'https://evil.example/callback' })).toBe(400);
  });

  test('is not one with a plain http URL, a user name, a fragment, or no path', async () => {
    const { host } = new URL(clientId);
    const others = [
      `http://${host}/agent.json`,
      `https://me@${host}/agent.json`,
      `https://${host}/a/../agent.json`,
      `https://${host}/agent.json#part`,
      `https://${host}/`,
    ];
    for (const other of others) expect(await statusOf({ client_id: other }), other).toBe(400);
    expect(asked).toBe(0);
  });

  test('is not read from an address that is not public, by name or itself, unless the hub is told so', async () => {
    await using strict = await startAuthorizationServer();
    const bob = await strict.login('bob');
    for (const client_id of [clientId, clientId.replace('localhost', '127.0.0.1')]) {
      expect((await strict.authorize(request({ client_id }), bob)).status).toBe(400);
    }
    expect(asked).toBe(0);
  });

  test('is read for nobody who is not logged in, and so often for those who push', async () => {
    const sent = await hub.authorize(request());
    expect([sent.status, asked]).toEqual([302, 0]);
    answer = (res) => void res.writeHead(404).end();
    const statuses = [];
    for (let push = 0; push < 7; push += 1) {
      const pushed = await hub.post('par', request({ client_id: `${clientId}?${push}` }));
      statuses.push(pushed.status);
    }
    expect(new Set(statuses)).toEqual(new Set([400, 429]));
    expect(asked).toBe(statuses.filter((status) => status === 400).length);
  });

  test('is read only so often for one user, who may go on with those that are known', async () => {
    const others = (count: number) => Array.from({ length: count }, (_, at) => `${clientId}?${at}`);
    expect(await statusOf()).toBe(200);
    answer = (res) => void res.writeHead(404).end();
    const statuses = [];
    for (const client_id of others(7)) statuses.push(await statusOf({ client_id }));
    expect(new Set(statuses)).toEqual(new Set([400, 429]));
    expect(asked).toBe(5);
    expect(await statusOf()).toBe(200);
    const bob = await hub.login('bob');
    const ofBob = request({ client_id: `${clientId}?of-bob` });
    expect((await hub.authorize(ofBob, bob)).status).toBe(400);
    expect(asked).toBe(6);
  });

  test('is not known where the hub reads none', async () => {
    await using closed = await startAuthorizationServer({ documentHosts: 'none' });
    const bob = await closed.login('bob');
    expect((await closed.authorize(request(), bob)).status).toBe(400);
    const form = { grant_type: 'refresh_token', client_id: clientId, refresh_token: 'x' };
    expect(await errorOf(await closed.post('token', form))).toBe('invalid_client');
    expect(asked).toBe(0);
  });
});

test('a document at the hub, or at a host below it, is of nobody else', () => {
  const { clientOf } = createClientDocuments({
    hosts: 'any',
    hubUrl: new URL('https://hub.example/'),
    documents: memorySpace(),
    reads: createFailureLimit({ counts: memorySpace(), now: Date.now }),
    log: pino({ level: 'silent' }),
  });
  expect(clientOf('https://agents.example/agent.json')?.name).toBe('agents.example');
  expect(clientOf('https://hub.example/user/eve/agent.json')).toBe(undefined);
  expect(clientOf('https://eve.hub.example/agent.json')).toBe(undefined);
});

test.each([
  ['8.8.8.8', true],
  ['agents.example', true],
  ['[2606:4700::1111]', true],
  ['10.1.2.3', false],
  ['192.168.0.1', false],
  ['172.31.0.1', false],
  ['169.254.169.254', false],
  ['0.0.0.0', false],
  ['[::1]', false],
  ['[::ffff:10.0.0.1]', false],
  ['[fd00::1]', false],
  ['[64:ff9b::a00:1]', false],
  ['[2002:a00:1::]', false],
])('%s may be public: %s', (host, isPublic) => {
  expect(mayBePublic(new URL(`https://${host}/`).hostname)).toBe(isPublic);
});
