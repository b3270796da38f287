import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import WebSocket from 'ws';
import { FakeBrowser } from '../../test/support/fake-browser.ts';
import { submitLogin, until } from '../../test/support/test-hub.ts';
import { adminToken, type Fleet, type Member } from './fleet.ts';

const maxMs = 30_000;
const ways = ['token', 'login', 'user'] as const;

/** With dead connections, so many rights are taken away in one round, spread over this time. */
const atOnce = 10;
const spreadMs = 2_000;
const feedRestored = 'database change feed restored';

/**
 * Takes rights away at one hub while a WebSocket is open at another. Returns how long after the answer
 * each was closed, in ms, sorted; infinite where it stayed open.
 */
export async function measureRevocations(fleet: Fleet, times: number): Promise<readonly number[]> {
  const delaysMs: number[] = [];
  for (let turn = 0; turn < times; turn += 1) {
    const [here, there] = pairOf(fleet, turn);
    const way = ways[turn % ways.length] ?? 'token';
    const revoke = await prepareOne(fleet, { here, there, way, name: `revoked-${turn}` });
    delaysMs.push(await revoke());
  }
  return delaysMs.sort((left, right) => left - right);
}

/** The same while the connections on which the hubs hear of changes have died without a word. */
export async function measureWithDeadFeeds(
  fleet: Fleet,
  times: number,
): Promise<readonly number[]> {
  const delaysMs: number[] = [];
  while (delaysMs.length < times) {
    const first = delaysMs.length;
    const revocations = [];
    for (let turn = first; turn < Math.min(times, first + atOnce); turn += 1) {
      const [here, there] = pairOf(fleet, turn);
      const way = ways[turn % ways.length] ?? 'token';
      revocations.push(await prepareOne(fleet, { here, there, way, name: `unheard-${turn}` }));
    }
    const losses = fleet.hubs.map((hub) => timesIn(hub.log(), feedRestored));
    fleet.silenceFeeds();
    const found = revocations.map(async (revoke, index) => {
      await pause((spreadMs * index) / atOnce);
      return revoke();
    });
    delaysMs.push(...(await Promise.all(found)));
    await until(
      () => fleet.hubs.every((hub, at) => timesIn(hub.log(), feedRestored) > (losses[at] ?? 0)),
      'all hubs hear of changes again',
    );
  }
  return delaysMs.sort((left, right) => left - right);
}

function timesIn(text: string, part: string): number {
  return text.split(part).length - 1;
}

function pairOf({ hubs }: Fleet, turn: number): readonly [Member, Member] {
  const [here, there] = [hubs[turn % hubs.length], hubs[(turn + 1) % hubs.length]];
  if (here === undefined || there === undefined) throw new Error('two hubs are needed');
  return [here, there];
}

/** Opens a WebSocket; returns what takes the right to it away and measures how long it stays open. */
async function prepareOne(
  fleet: Fleet,
  options: {
    readonly here: Member;
    readonly there: Member;
    readonly way: (typeof ways)[number];
    readonly name: string;
  },
): Promise<() => Promise<number>> {
  const { here, there, way, name } = options;
  const ask = (path: string, method: string, body?: unknown) =>
    fetch(`${here.url}hub/api${path}`, {
      method,
      headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  await expectStatus(ask(`/users/${name}`, 'POST'), 201);
  let headers: Record<string, string>;
  let revoke: () => Promise<Response>;
  if (way === 'login') {
    const browser = new FakeBrowser();
    await submitLogin(browser, fleet.url, name, 'test');
    await browser.open(`${fleet.url}services/app/ok`);
    headers = {
      cookie: browser.cookieHeader(`${fleet.url}services/app/`),
      origin: new URL(fleet.url).origin,
      host: new URL(fleet.url).host,
    };
    const { sessions } = (await (await ask(`/users/${name}/sessions`, 'GET')).json()) as {
      sessions: { id: string }[];
    };
    revoke = () => ask(`/users/${name}/sessions/${sessions[0]?.id}`, 'DELETE');
  } else {
    const made = (await (await ask(`/users/${name}/tokens`, 'POST', {})).json()) as {
      id: string;
      token: string;
    };
    headers = { authorization: `token ${made.token}` };
    revoke =
      way === 'token'
        ? () => ask(`/users/${name}/tokens/${made.id}`, 'DELETE')
        : () => ask(`/users/${name}`, 'DELETE');
  }
  const socket = new WebSocket(`${there.url.replace('http', 'ws')}services/app/socket`, {
    headers,
  });
  await opened(socket, `${way} of ${name} at ${there.name}`);
  const closed = new Promise<number>((resolve) => {
    socket.once('close', () => resolve(performance.now()));
    setTimeout(() => resolve(Number.POSITIVE_INFINITY), maxMs).unref();
  });
  return async () => {
    const answer = await revoke();
    const answeredAt = performance.now();
    if (!answer.ok) throw new Error(`${way}: ${answer.status} ${await answer.text()}`);
    const closedAt = await closed;
    socket.terminate();
    return Math.max(0, closedAt - answeredAt);
  };
}

async function opened(socket: WebSocket, what: string): Promise<void> {
  const refused = new Promise<never>((_resolve, reject) => {
    socket.once('unexpected-response', (_request, response) =>
      reject(new Error(`${what}: ${response.statusCode} ${JSON.stringify(response.headers)}`)),
    );
    socket.on('error', (error) => reject(new Error(`${what}: ${error.message}`)));
  });
  refused.catch(() => undefined);
  await Promise.race([once(socket, 'open'), refused]);
}

async function expectStatus(answering: Promise<Response>, status: number): Promise<void> {
  const answer = await answering;
  const text = await answer.text();
  if (answer.status !== status) throw new Error(`${answer.status} instead of ${status}: ${text}`);
}
