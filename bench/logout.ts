/**
 * Ends logins at three hubs on one PostgreSQL, and measures until each client has been told of it while one is down:
 * `npm run bench -- logout --logouts=100`. Writes bench/results/logout.md.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { decodeJwt } from 'jose';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { freePort } from '../test/support/free-port.ts';
import { submitLogin, until } from '../test/support/test-hub.ts';
import { startFleet } from './cluster/fleet.ts';
import { writeResultsTable } from './results-table.ts';
import { percentile } from './servers/health-probe.ts';

const { values } = parseArgs({ options: { logouts: { type: 'string', default: '100' } } });
const logouts = Number(values.logouts);
const answering = 20;
const redirectUri = 'http://127.0.0.1:9/callback';
const names = Array.from({ length: answering + 1 }, (_, index) => `client-${index}`);
const [downName = ''] = names;
const secretOf = (name: string) => `secret-of-${name}-0123456789`;

/** When each client heard of the logins that it knows by their `sid`, by the clock of `performance.now()`. */
const heardAt = new Map<string, number>();
const keyOf = (name: string, sid: unknown) => `${name} ${String(sid)}`;

async function listen(port: number): Promise<Server> {
  const server = createServer((request, answer) => {
    void text(request).then((body) => {
      const { sid } = decodeJwt(new URLSearchParams(body).get('logout_token') ?? '');
      const key = keyOf((request.url ?? '').slice(1), sid);
      if (!heardAt.has(key)) heardAt.set(key, performance.now());
      answer.end();
    });
  }).listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

const [port, downPort] = [await freePort(), await freePort()];
await using disposables = new AsyncDisposableStack();
const serve = async (at: number) => {
  const server = await listen(at);
  disposables.defer(() => void server.close());
};
await serve(port);
const fleet = disposables.use(
  await startFleet({
    hubs: 3,
    gateways: 0,
    clients: names.map((name) => ({
      name,
      api_token: secretOf(name),
      oauth_redirect_uri: redirectUri,
      oauth_no_confirm: true,
      oauth_id_token_alg: 'ES256',
      oauth_logout_url: `http://127.0.0.1:${name === downName ? downPort : port}/${name}`,
    })),
  }),
);

/** Logs a user in at a client; gives what that knows the login by. */
async function logInAt(browser: FakeBrowser, name: string): Promise<string> {
  const client_id = `service-${name}`;
  const asked = { response_type: 'code', client_id, redirect_uri: redirectUri, scope: 'openid' };
  const query = new URLSearchParams(asked);
  const { headers } = await browser.request(`${fleet.apiUrl}/oauth2/authorize?${query}`);
  const code = URL.parse(headers.location ?? '')?.searchParams.get('code') ?? '';
  const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri };
  const credentials = { client_id, client_secret: secretOf(name) };
  const body = new URLSearchParams({ ...form, ...credentials });
  const answer = await fetch(`${fleet.apiUrl}/oauth2/token`, { method: 'POST', body });
  const { id_token } = (await answer.json()) as { id_token?: string };
  if (id_token === undefined) throw new Error(`${name} got no ID token: ${answer.status}`);
  return keyOf(name, decodeJwt(id_token)['sid']);
}

const eachMs: number[] = [];
const allMs: number[] = [];
const missed: string[] = [];
for (let turn = 0; turn < logouts; turn += 1) {
  const browser = new FakeBrowser();
  await submitLogin(browser, fleet.url, `user-${turn}`, 'test');
  const keys: string[] = [];
  for (const name of names) keys.push(await logInAt(browser, name));
  missed.push(...keys.splice(0, 1));
  // At whichever hub is next.
  const since = performance.now();
  await browser.request(`${fleet.url}hub/logout`);
  await until(() => keys.every((key) => heardAt.has(key)), `all hear of logout ${turn}`);
  const delays = keys.map((key) => (heardAt.get(key) ?? Number.NaN) - since);
  eachMs.push(...delays);
  allMs.push(Math.max(...delays));
}
const early = missed.filter((key) => heardAt.has(key)).length;
if (early > 0) throw new Error(`the client that is down heard of ${early} logouts`);
const backAt = performance.now();
await serve(downPort);
await until(() => missed.every((key) => heardAt.has(key)), 'the one that was down is told of all');
const caughtUpSeconds = (performance.now() - backAt) / 1000;

for (const list of [eachMs, allMs]) list.sort((one, other) => one - other);
const middleAndEnd = (sorted: readonly number[]) =>
  `${percentile(sorted, 0.5).toFixed(0)} / ${percentile(sorted, 0.99).toFixed(0)} ms`;
const p99Ms = percentile(allMs, 0.99);
await writeResultsTable({
  name: 'logout',
  heading: 'Clients told of a logout',
  database: 'PostgreSQL',
  setting: `Three hubs behind HAProxy, ${logouts} logins, each known to ${answering + 1} clients by OpenID Connect, of which one is down. Times are from the request to log out.`,
  rows: [
    ['until one client has been told, p50 / p99', middleAndEnd(eachMs), '', ''],
    [
      `until all ${answering} that answer have been told, p50 / p99`,
      middleAndEnd(allMs),
      'p99 < 2,000 ms',
      p99Ms < 2_000 ? 'yes' : 'NO',
    ],
    [
      `logouts that the one that was down is told of, once it is back`,
      `${missed.length} of ${logouts}, the last after ${caughtUpSeconds.toFixed(0)} s`,
      'all',
      'yes',
    ],
  ],
});
if (p99Ms >= 2_000) process.exitCode = 1;
