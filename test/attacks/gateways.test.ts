import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createHopProof } from '../../src/cluster/instances/hop-proof.ts';
import { Secret } from '../../src/platform/config/secret.ts';
import { createSealer } from '../../src/platform/crypto/sealer.ts';
import { loginCookie } from '../../src/platform/protocol/cookie-names.ts';
import type { GatewaySettings } from '../../src/traffic/gateway/feed-events.ts';
import { connectToHub } from '../../src/traffic/gateway/hub-link.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { edgeService } from '../support/gateway-process.ts';
import { createHubFolder, spawnHubProcess } from '../support/hub-process.ts';
import { adminToken, callApi, createUsers, tokenOf } from '../support/server-hub.ts';
import { createTestHub, type TestHub, testCookieSecret, until } from '../support/test-hub.ts';
import { head, rawClient } from './proxy-harness.ts';

const edgeToken = 'token-of-the-edge';
const client = {
  address: '203.0.113.9',
  protocol: 'https',
  host: 'hub.example.org',
  isTrustedProxy: true,
} as const;

let hub: TestHub;
beforeAll(async () => {
  hub = await createTestHub({ Hub: edgeService });
});
afterAll(() => hub[Symbol.asyncDispose]());

/** The first event of the feed, as it is sent. */
async function snapshotText(): Promise<string> {
  const answer = await hub.api('/gateway/feed?name=thief&version=1&nonce=once', edgeToken);
  let received = '';
  for await (const chunk of answer.body ?? []) {
    received += Buffer.from(chunk).toString();
    if (received.includes('\n\n')) break;
  }
  return received.slice(received.indexOf('data: '));
}

async function settingsOfGateway(): Promise<GatewaySettings> {
  const event = JSON.parse((await snapshotText()).slice('data: '.length).split('\n\n')[0] ?? '');
  return event.settings as GatewaySettings;
}

test('the keys of a gateway open no login cookie, and make none that the hub believes', async () => {
  const browser = await hub.logIn('alice');
  const sealed = browser.cookie(loginCookie)?.value ?? '';
  const { secrets } = await settingsOfGateway();
  expect(JSON.stringify(await settingsOfGateway())).not.toContain(testCookieSecret);
  const own = createSealer([new Secret(testCookieSecret)], 'login-cookie');
  const stolen = createSealer(
    secrets.map((secret) => new Secret(secret)),
    'login-cookie',
  );
  expect(stolen.open(sealed, loginCookie)).toBeUndefined();

  const key = own.open(sealed, loginCookie) ?? '';
  const visit = async (cookie: string) => {
    const other = new FakeBrowser();
    other.setCookie(loginCookie, cookie, '/hub/');
    return (await other.request(`${hub.url}hub/home`)).status;
  };
  expect(await visit(own.seal(key, loginCookie))).toBe(200);
  expect(await visit(stolen.seal(key, loginCookie))).toBe(302);
});

test('only a service that is a gateway gets the feed and asks who visitors are', async () => {
  await createUsers(hub, 'bob');
  const tokens = [undefined, 'no-such-token', adminToken, await tokenOf(hub, 'bob')];
  for (const token of tokens) {
    const feed = await hub.api('/gateway/feed?name=x&version=1&nonce=x', token);
    const asked = await hub.api('/gateway/questions', token, {
      method: 'POST',
      body: JSON.stringify({ name: 'bearerOfToken', question: { token: edgeToken } }),
    });
    expect([feed.status, asked.status]).toEqual([403, 403]);
  }
  await using gateway = spawnHubProcess(
    ['gateway', '--hub', hub.apiUrl.replace(/hub\/api$/, ''), '--bind', 'http://127.0.0.1:1/'],
    { cwd: hub.directory, env: { HUB_GATEWAY_TOKEN: 'no-such-token' } },
  );
  expect(await gateway.exited).toBe(1);
  expect(gateway.stderr()).toContain('the hub refuses the token of this gateway');
});

test('a gateway learns what it asks for as it is declared, and nothing else of it', async () => {
  await createUsers(hub, 'noted');
  const made = await callApi(hub, adminToken, 'POST', '/users/noted/tokens', { note: 'private' });
  const { id } = made.body as { id: string };
  const ask = (name: string, question: object) =>
    callApi(hub, edgeToken, 'POST', '/gateway/questions', { name, question });
  const { body } = await ask('bearerOfTokenId', { tokenId: id });
  expect(body.answer).toMatchObject({
    owner: { kind: 'user', name: 'noted' },
    accessToken: { id, note: '' },
  });
  expect(body.answer).not.toHaveProperty('user');
  const wrong = [
    await ask('bearerOfTokenId', { token: id }),
    await ask('bearerOfToken', { token: '' }),
    await ask('toString', {}),
    await ask('report', { name: 'edge', number: 'one' }),
  ];
  expect(wrong.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
});

test('a server cannot claim to be a gateway and say who its client is', async () => {
  const path = '/hub/login';
  const forged = createHopProof([new Secret('guessed')]).make(
    { to: 'hub', method: 'GET', target: path },
    client,
  );
  const { secrets } = await settingsOfGateway();
  const genuine = createHopProof(secrets.map((secret) => new Secret(secret)));
  const ask = async (url: string, header: string) => {
    const sent = request(url, {
      headers: { 'x-hub-hop': header, 'x-forwarded-for': '198.51.100.1' },
    });
    sent.end();
    const [answer] = await once(sent, 'response');
    await text(answer);
    return answer.statusCode as number;
  };
  const internal = new URL(hub.apiUrl).origin;
  expect(await ask(internal + path, forged)).toBe(403);
  // Of another path, and so of a request that was made before.
  const moved = genuine.make({ to: 'hub', method: 'GET', target: '/hub/home' }, client);
  expect(await ask(internal + path, moved)).toBe(403);
  await ask(new URL(path, hub.url).href, forged);
  const addresses = () =>
    hub.logLines.flatMap(({ url, address }) => (url === path ? [address] : []));
  await until(() => addresses().length > 0, 'the request is logged');
  expect(addresses()).toContain('127.0.0.1');
  expect(addresses()).not.toContain(client.address);
  const right = genuine.make({ to: 'hub', method: 'GET', target: path }, client);
  expect(await ask(internal + path, right)).toBe(200);
  await until(() => addresses().includes(client.address), 'the word of a gateway counts');
});

test('a feed that was recorded before is not believed', async () => {
  const recorded = await snapshotText();
  let asked = 0;
  const server = createServer((_req, res) => {
    asked += 1;
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write(recorded);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const ending = new AbortController();
  const connecting = connectToHub(
    {
      hubUrl: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
      token: new Secret(edgeToken),
      name: 'victim',
      version: '1',
      log: pino({ level: 'silent' }),
    },
    ending.signal,
  ).then(
    () => 'connected',
    () => 'not connected',
  );
  await until(() => asked > 2, 'it asks once more');
  ending.abort();
  expect(await connecting).toBe('not connected');
  server.close();
  server.closeAllConnections();
});

/** Takes a port as soon as it is free, and prints what is sent to it. */
const thief = `
const server = require('node:http').createServer((req, res) => {
  process.stdout.write(req.url + JSON.stringify(req.headers));
  res.end('stolen');
});
const take = () => server.listen(Number(process.argv[1]), '127.0.0.1');
server.on('error', () => setTimeout(take, 1));
server.on('listening', () => process.stderr.write('listening'));
server.on('connection', () => process.stderr.write('connected'));
take();
process.stderr.write('trying ');
`;

test.runIf(process.getuid?.() === 0)(
  'a program that takes the port of a hub that died is told no token, and gets nothing of visitors',
  async () => {
    await using folder = await createHubFolder({ Hub: { gateways: 1, gateway_linger: 60 } });
    const first = await folder.start();
    const port = new URL(folder.apiUrl).port;
    const account = { uid: 65_534, gid: 65_534 };
    const other = spawn(process.execPath, ['-e', thief, port], { cwd: '/', ...account });
    const [sent, said] = [text(other.stdout), wordsOf(other)];
    await said.until('trying');
    const headers = { cookie: `${loginCookie}=the-login-of-a-visitor` };
    const visit = () => fetch(`${folder.url}hub/login`, { headers });
    const requests = 8;
    first.signal('SIGSTOP');
    let answered = 0;
    const underWay = Array.from({ length: requests }, () => visit().finally(() => (answered += 1)));
    // Each on a connection of its own, beside that of the feed. A slow machine's gateway answers some by itself, as the
    // hub has fallen silent.
    await until(
      () => answered === requests || connectionsTo(port) > requests,
      'the requests are with the hub',
    );

    first.signal('SIGKILL');
    await said.until('listening');
    const answers = await Promise.all([...underWay, visit()]);
    // 504 where the hub was silent for too long before it died.
    for (const { status } of answers) expect([503, 504]).toContain(status);

    other.kill('SIGKILL');
    expect((await sent).slice(0, 1_000)).toBe('');
    const second = await folder.start();
    expect((await fetch(`${folder.url}hub/login`)).status).toBe(200);
    second.signal('SIGINT');
    await second.exited;
  },
);

test.runIf(process.getuid?.() === 0)(
  'nor the handshake of a WebSocket that arrives before the gateway knows that the hub is gone',
  async () => {
    await using folder = await createHubFolder({ Hub: { gateways: 1, gateway_linger: 60 } });
    const hubProcess = await folder.start();
    const { pid } = hubProcess;
    const gateways = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    const signal = (name: NodeJS.Signals) => {
      for (const gateway of gateways) process.kill(Number(gateway), name);
    };
    const visitor = await rawClient(Number(new URL(folder.url).port), head('GET /hub/health'));
    await visitor.until('200 OK');
    const account = { uid: 65_534, gid: 65_534 };
    const port = new URL(folder.apiUrl).port;
    const other = spawn(process.execPath, ['-e', thief, port], { cwd: '/', ...account });
    const [sent, said] = [text(other.stdout), wordsOf(other)];
    await said.until('trying');

    signal('SIGSTOP');
    visitor.write(
      head(
        'GET /user/nobody/socket',
        'Connection: Upgrade',
        'Upgrade: websocket',
        'Sec-WebSocket-Version: 13',
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
        `Cookie: ${loginCookie}=the-login-of-a-visitor`,
      ),
    );
    hubProcess.signal('SIGKILL');
    await said.until('listening');
    signal('SIGCONT');
    await visitor.closed;
    other.kill('SIGKILL');
    expect((await sent).slice(0, 1_000)).toBe('');
  },
);

test.runIf(process.getuid?.() === 0)(
  'nor what a gateway asks of a hub that no longer listens while its feed stands',
  async () => {
    const recorded = await snapshotText();
    const server = createServer((req, res) => {
      const { searchParams } = new URL(req.url ?? '/', 'http://hub.invalid');
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(recorded.replace('"once"', JSON.stringify(searchParams.get('nonce'))));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const ending = new AbortController();
    await using link = await connectToHub(
      {
        hubUrl: new URL(`http://127.0.0.1:${port}/`),
        token: new Secret(edgeToken),
        name: 'local',
        version: '1',
        log: pino({ level: 'silent' }),
        isLocal: true,
      },
      ending.signal,
    );
    link.deliverTo({ snapshot: () => {}, news: () => {} });
    expect(await link.untilConnected(5_000)).toBe(true);
    server.close();
    const account = { uid: 65_534, gid: 65_534 };
    const other = spawn(process.execPath, ['-e', thief, String(port)], { cwd: '/', ...account });
    const [sent, said] = [text(other.stdout), wordsOf(other)];
    await said.until('listening');
    const asked = link.ask('bearerOfToken', { token: 'of-a-visitor' });
    const refused = expect(asked).rejects.toMatchObject({ code: 'unavailable' });
    await said.until('connected');
    ending.abort();
    await refused;
    other.kill('SIGKILL');
    expect((await sent).slice(0, 1_000)).toBe('');
    server.closeAllConnections();
  },
);

function wordsOf(child: ChildProcessWithoutNullStreams) {
  let text = '';
  child.stderr.on('data', (data) => {
    text += String(data);
  });
  return { until: (word: string) => until(() => text.includes(word), `it says ${word}`) };
}

function connectionsTo(port: string): number {
  const address = `0100007F:${Number(port).toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/tcp', 'latin1').split(` ${address} 01 `).length - 1;
}
