import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent, fetch, type Response } from 'undici';
import WebSocket from 'ws';
import { FakeBrowser } from '../../test/support/fake-browser.ts';
import type { HubFolder } from '../../test/support/hub-process.ts';
import { submitLogin } from '../../test/support/test-hub.ts';
import type { Random } from './random.ts';

/** What the hub has acknowledged, and so must know for ever. */
export interface Ledger {
  readonly created: Set<string>;
  readonly deleted: Set<string>;
  readonly revokedTokens: Set<string>;
}

/** Mixed traffic that goes on whatever is answered. */
export interface Traffic {
  readonly ledger: Ledger;
  /** How often what was tried ended how, such as `login 302` or `write failed`. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Whoever has a server. */
  readonly serverUsers: readonly string[];
  start(): void;
  /** Resolves when the last answer is there. */
  stop(): Promise<void>;
  /** Closes the connections that are kept for further requests. */
  leave(): Promise<void>;
  /** Asks the API as the administrating service. */
  api(path: string, method?: string, body?: unknown): Promise<Response>;
  /** Asks the gateway as the same, or the hub as whoever has the token. */
  ask(url: string, token?: string): Promise<Response>;
}

const adminToken = 'admin-service-token';
const authorization = `token ${adminToken}`;
const requestTimeoutMs = 30_000;
const persons = Array.from({ length: 10 }, (_, index) => `person-${index}`);
const serverUsers = Array.from({ length: 6 }, (_, index) => `tenant-${index}`);

export function createTraffic(folder: Pick<HubFolder, 'url' | 'apiUrl'>, random: Random): Traffic {
  const { url, apiUrl } = folder;
  const ledger = {
    created: new Set<string>(),
    deleted: new Set<string>(),
    revokedTokens: new Set<string>(),
  };
  const outcomes: Record<string, number> = {};
  let agent = new Agent();
  let isRunning = false;
  let workers: Promise<void>[] = [];
  let written = 0;

  function count(what: string, outcome: string | number): void {
    outcomes[`${what} ${outcome}`] = (outcomes[`${what} ${outcome}`] ?? 0) + 1;
  }

  const api: Traffic['api'] = (path, method = 'GET', body) =>
    fetch(apiUrl + path, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      dispatcher: agent,
      signal: AbortSignal.timeout(requestTimeoutMs),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

  const ask: Traffic['ask'] = (address, token = adminToken) =>
    fetch(address, {
      headers: { authorization: `token ${token}` },
      redirect: 'manual',
      dispatcher: agent,
      signal: AbortSignal.timeout(requestTimeoutMs),
    });

  async function write(): Promise<void> {
    written += 1;
    const name = `user-${written}`;
    const made = await api(`/users/${name}`, 'POST');
    count('write', made.status);
    if (made.status !== 201) return;
    ledger.created.add(name);
    if (random.isTrue(0.3)) await makeAndRevokeToken(name);
    if (random.isTrue(0.2)) {
      // Until it is acknowledged, the one is as good as the other.
      ledger.created.delete(name);
      const deleted = await api(`/users/${name}`, 'DELETE');
      count('write', deleted.status);
      if (deleted.status === 204) ledger.deleted.add(name);
    }
  }

  async function makeAndRevokeToken(name: string): Promise<void> {
    const made = await api(`/users/${name}/tokens`, 'POST', { note: 'chaos' });
    count('write', made.status);
    if (made.status !== 201) return;
    const { id, token: secret } = (await made.json()) as { id: string; token: string };
    const revoked = await api(`/users/${name}/tokens/${id}`, 'DELETE');
    count('write', revoked.status);
    if (revoked.status === 204) ledger.revokedTokens.add(secret);
  }

  async function logIn(): Promise<void> {
    const browser = new FakeBrowser();
    const { status } = await submitLogin(browser, url, random.pick(persons), 'test');
    count('login', status);
    if (status === 302) count('page', (await browser.request(`${url}hub/home`)).status);
  }

  async function spawnAndStop(name: string): Promise<void> {
    count('spawn', (await api(`/users/${name}/server`, 'POST')).status);
    await pause(random.between(100, 2_000));
    if (random.isTrue(0.6)) count('stop', (await api(`/users/${name}/server`, 'DELETE')).status);
  }

  async function forward(): Promise<void> {
    const path = random.pick([
      'services/app/ok',
      'services/app/large',
      'open/ok',
      ...serverUsers.map((name) => `user/${name}/`),
    ]);
    const answer = await ask(url + path);
    await answer.arrayBuffer();
    count('forwarded', answer.status);
  }

  async function talk(): Promise<void> {
    const path = random.pick(['services/app/socket', 'open/socket']);
    const socket = new WebSocket(url.replace('http', 'ws') + path, {
      headers: { authorization },
      handshakeTimeout: requestTimeoutMs,
    });
    socket.on('error', () => {});
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    socket.on('close', () => resolve());
    await Promise.race([once(socket, 'open'), closed]).catch(() => {});
    if (socket.readyState === WebSocket.OPEN) {
      socket.send('hello');
      await Promise.race([once(socket, 'message'), closed, pause(requestTimeoutMs)]);
      await Promise.race([pause(random.between(50, 2_000)), closed]);
      count('websocket', socket.readyState === WebSocket.OPEN ? 'echoed' : 'cut');
    } else count('websocket', 'refused');
    if (random.isTrue(0.5)) socket.terminate();
    else socket.close();
    await Promise.race([closed, pause(1_000)]);
    socket.terminate();
  }

  async function repeat(what: string, restMs: number, work: () => Promise<void>): Promise<void> {
    while (isRunning) {
      try {
        await work();
      } catch (error) {
        const isLate = error instanceof Error && error.name === 'TimeoutError';
        count(what, isLate ? 'without answer' : 'connection lost');
        await pause(50);
      }
      await pause(random.between(0, restMs * 2));
    }
  }

  return {
    ledger,
    outcomes,
    serverUsers,
    api,
    ask,
    start() {
      isRunning = true;
      const times = (total: number, begin: () => Promise<void>) =>
        Array.from({ length: total }, begin);
      workers = [
        ...times(3, () => repeat('write', 30, write)),
        ...times(2, () => repeat('login', 200, logIn)),
        ...times(4, () => repeat('forwarded', 20, forward)),
        ...times(4, () => repeat('websocket', 100, talk)),
        ...serverUsers.map((name) => repeat('spawn', 500, () => spawnAndStop(name))),
      ];
    },
    async stop() {
      isRunning = false;
      await Promise.all(workers);
    },
    async leave() {
      const former = agent;
      agent = new Agent();
      await former.destroy();
    },
  };
}

/** Everything that was acknowledged and that the hub does not know any more. */
export async function findLost(
  { ledger, api, ask }: Traffic,
  { apiUrl }: Pick<HubFolder, 'apiUrl'>,
): Promise<string[]> {
  const lost: string[] = [];
  const expectStatus = async (
    what: string,
    answer: ReturnType<Traffic['ask']>,
    isRight: RegExp,
  ) => {
    const { status, body } = await answer;
    await body?.cancel();
    if (!isRight.test(String(status))) lost.push(`${what} (${status})`);
  };
  const checks = [
    ...[...ledger.created].map(
      (name) => () => expectStatus(`${name} was created`, api(`/users/${name}`), /200/),
    ),
    ...[...ledger.deleted].map(
      (name) => () => expectStatus(`${name} was deleted`, api(`/users/${name}`), /404/),
    ),
    ...[...ledger.revokedTokens].map(
      (token, index) => () =>
        expectStatus(`token ${index} was revoked`, ask(`${apiUrl}/user`, token), /401|403/),
    ),
  ];
  const queue = checks.values();
  const worker = async () => {
    for (const check of queue) await check();
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return lost;
}
