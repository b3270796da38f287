/**
 * The hub as OpenID provider, on one core with SQLite, beside `oidc-provider` with its memory store, the load on the other
 * core: `npm run bench -- openid --rounds=12 --seconds=3`. Writes bench/results/openid.md.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { createLimiter } from '../src/platform/concurrency/limiter.ts';
import { FakeBrowser } from '../test/support/fake-browser.ts';
import { freePort } from '../test/support/free-port.ts';
import { submitLogin } from '../test/support/test-hub.ts';
import { userNames } from './api/contender.ts';
import { startHub } from './api/hub.ts';
import { bothCores, type Cores, exactCpuSeconds, loadCore, type PinnedProcess, proxyCore, startPinned } from './gateway/pinned-process.ts';
import { measureInterleaved, median, ratioOf } from './gateway/rounds.ts';
import { writeResultsTable } from './results-table.ts';
import { percentile, startHealthProbe } from './servers/health-probe.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '12' },
    seconds: { type: 'string', default: '3' },
  },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
const connections = 16;
/** As many as the memory store keeps at once. */
const codesInRound = 300;
const algorithms = ['ES256', 'RS256'] as const;
type Algorithm = (typeof algorithms)[number];
/**
 * Who may open every service without a role. Each logs in to a client once in a round: a login that holds many tokens
 * of one client has its oldest ended with every other one.
 */
const administrators = userNames(codesInRound);
const redirectUri = 'http://127.0.0.1:9/callback';
const secretOf = (algorithm: Algorithm) => `secret-of-the-client-${algorithm}`;

const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
await using disposables = new AsyncDisposableStack();
disposables.defer(() => rm(directory, { recursive: true, force: true }));
// Ahead of whatever else the machine does, as the contenders are.
if (process.getuid?.() === 0) setPriority(-15);
const moveTo = (core: Cores) =>
  execFileSync('taskset', ['-a', '-p', '-c', String(core), String(process.pid)], { stdio: 'ignore' });
moveTo(loadCore);

const hub = disposables.use(
  await startHub({
    core: proxyCore,
    directory,
    program: 'source',
    adminUsers: administrators,
    services: algorithms.map((algorithm) => ({
      name: algorithm,
      api_token: secretOf(algorithm),
      oauth_redirect_uri: redirectUri,
      oauth_id_token_alg: algorithm,
      oauth_no_confirm: true,
    })),
  }),
);
const url = hub.url ?? '';
const providerPort = await freePort();
const provider = disposables.use(
  await startPinned({
    core: proxyCore,
    command: [process.execPath, join(import.meta.dirname, 'openid', 'oidc-provider.js'), String(providerPort)],
    port: providerPort,
    environment: {
      CLIENTS: JSON.stringify(
        algorithms.map((algorithm) => ({
          client_id: `service-${algorithm}`,
          client_secret: secretOf(algorithm),
          redirect_uris: [redirectUri],
          grant_types: ['authorization_code'],
          id_token_signed_response_alg: algorithm,
        })),
      ),
    },
  }),
);

const agent = new Agent({ keepAlive: true, maxSockets: connections });
async function ask(address: string, headers: Record<string, string>, body?: URLSearchParams) {
  const answer = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    const options = { agent, method: body === undefined ? 'GET' : 'POST', headers };
    request(address, options, resolve).on('error', reject).end(body?.toString());
  });
  return { status: answer.statusCode, location: answer.headers.location ?? '', body: await text(answer) };
}

const browsers: FakeBrowser[] = [];
for (const name of administrators) {
  const browser = new FakeBrowser();
  await submitLogin(browser, url, name, 'test');
  browsers.push(browser);
}
interface Contender {
  readonly process: PinnedProcess;
  readonly tokenUrl: string;
  codes(algorithm: Algorithm): Promise<string[]>;
}
const inTurn = createLimiter(connections);
const ours: Contender = {
  process: hub.process,
  tokenUrl: `${url}hub/api/oauth2/token`,
  codes(algorithm) {
    const asked = { response_type: 'code', client_id: `service-${algorithm}`, redirect_uri: redirectUri, scope: 'openid' };
    const address = `${url}hub/api/oauth2/authorize?${new URLSearchParams(asked)}`;
    const code = async (at: number) => {
      const cookie = browsers[at % browsers.length]?.cookieHeader(address) ?? '';
      const { location, status } = await ask(address, { cookie });
      const found = URL.parse(location)?.searchParams.get('code');
      if (!found) throw new Error(`no code: ${status} ${location}`);
      return found;
    };
    return Promise.all(Array.from({ length: codesInRound }, (_, at) => inTurn(() => code(at))));
  },
};
const theirs: Contender = {
  process: provider,
  tokenUrl: `http://127.0.0.1:${providerPort}/token`,
  codes: async (algorithm) =>
    JSON.parse(
      (await ask(`http://127.0.0.1:${providerPort}/codes/service-${algorithm}/${codesInRound}`, {})).body,
    ),
};

/** Exchanges codes, and gives how many in a second and what each cost. */
async function exchange({ process: server, tokenUrl, codes }: Contender, algorithm: Algorithm) {
  const made = await codes(algorithm);
  const credentials = Buffer.from(`service-${algorithm}:${secretOf(algorithm)}`).toString('base64');
  const headers = {
    authorization: `Basic ${credentials}`,
    'content-type': 'application/x-www-form-urlencoded',
  };
  const cpuBefore = exactCpuSeconds(server);
  const since = performance.now();
  const answers = await Promise.all(
    made.map((code) =>
      inTurn(() => {
        const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri };
        return ask(tokenUrl, headers, new URLSearchParams(form));
      }),
    ),
  );
  const seconds_ = (performance.now() - since) / 1000;
  const cpuMicros = ((exactCpuSeconds(server) - cpuBefore) / made.length) * 1e6;
  const wrong = answers.find(({ body }) => !body.includes('"id_token"'));
  if (wrong !== undefined) throw new Error(`${tokenUrl}: ${wrong.status} ${wrong.body}`);
  const { access_token: token } = JSON.parse(answers.at(-1)?.body ?? '') as { access_token: string };
  return { perSecond: made.length / seconds_, cpuMicros, token };
}

const rows: string[][] = [];
const row = (what: string, measured: string, limit = '', isGood = true) =>
  rows.push([what, measured, limit, limit === '' ? '' : isGood ? 'yes' : 'NO']);
const healthMs: number[] = [];
let token = '';
for (const algorithm of algorithms) {
  const figures = { ours: [] as number[], theirs: [] as number[], oursCpu: [] as number[], theirsCpu: [] as number[] };
  // The first rounds are for the compiler.
  for (let round = -3; round < rounds; round += 1) {
    const probe = await startHealthProbe(`${url}hub/health`);
    const one = await exchange(ours, algorithm);
    const latencies = await probe.stop();
    const other = await exchange(theirs, algorithm);
    ({ token } = one);
    if (round < 0) continue;
    healthMs.push(...latencies);
    figures.ours.push(one.perSecond);
    figures.oursCpu.push(one.cpuMicros);
    figures.theirs.push(other.perSecond);
    figures.theirsCpu.push(other.cpuMicros);
  }
  const ratio = ratioOf(figures.ours, figures.theirs);
  const must = algorithm === 'ES256' ? 1.5 : 1;
  row(
    `codes for tokens, ${algorithm}: hub, SQLite`,
    `${median(figures.ours).toFixed(0)}/s, ${median(figures.oursCpu).toFixed(0)} µs of CPU`,
  );
  row(
    'the same: oidc-provider, in memory',
    `${median(figures.theirs).toFixed(0)}/s, ${median(figures.theirsCpu).toFixed(0)} µs of CPU`,
  );
  row('the first against the second', `${ratio.toFixed(2)}×`, `≥ ${must}×`, ratio >= must);
  row('the same by CPU', `${ratioOf(figures.theirsCpu, figures.oursCpu).toFixed(2)}×`);
}
const p99Ms = percentile(healthMs.toSorted((one, other) => one - other), 0.99);
row('health of the hub meanwhile, p99', `${p99Ms.toFixed(1)} ms`, '≤ 50 ms', p99Ms <= 50);

const bearer = { authorization: `Bearer ${token}` };
const pairs = [
  ['UserInfo against GET /hub/api/user', 'hub/api/oauth2/userinfo', 'hub/api/user', 0.9],
  ['JWKS against GET /hub/health', 'hub/api/oauth2/jwks', 'hub/health', 0.8],
  ['discovery against GET /hub/health', '.well-known/openid-configuration', 'hub/health', 0.8],
] as const;
const measured = await measureInterleaved({
  contenders: pairs.flatMap(([what, path, base]) =>
    [path, base].map((each) => ({
      name: `${what}: ${each}`,
      url: url + each,
      headers: bearer,
      processes: [hub.process],
    })),
  ),
  rounds: 3,
  seconds,
  connections,
  progress: (line) => process.stderr.write(`${line}\n`),
});
for (const [index, [what, , , must]] of pairs.entries()) {
  const [one, base] = measured.slice(index * 2, index * 2 + 2);
  const ratio = ratioOf(one?.roundRequestsPerSecond ?? [], base?.roundRequestsPerSecond ?? []);
  row(what, `${ratio.toFixed(2)}× of ${base?.requestsPerSecond.toFixed(0)}/s`, `≥ ${must}×`, ratio >= must);
}
agent.destroy();
moveTo(bothCores);
await writeResultsTable({
  name: 'openid',
  heading: 'The hub as OpenID provider',
  setting: `Each program alone on one core, ${connections} connections from the other, ${rounds} rounds of ${codesInRound} codes. The hub keeps what it issues in its database, oidc-provider in memory.`,
  rows,
});
