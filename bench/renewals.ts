/**
 * Certificates that end within seconds, renewed by ACME (pebble) at three hubs on one PostgreSQL while clients use kept
 * connections of HTTP/1.1, new handshakes and resumed ones: how many requests fail. Writes bench/results/renewals.md.
 * `npm run bench -- renewals --renewals=90`
 */
import { randomBytes } from 'node:crypto';
import { Agent } from 'node:https';
import { connect, type PeerCertificate } from 'node:tls';
import { parseArgs } from 'node:util';
import { freePort } from '../test/support/free-port.ts';
import { createHubFolder, type HubProcess } from '../test/support/hub-process.ts';
import { startPebble } from '../test/support/pebble.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { until } from '../test/support/test-hub.ts';
import { writeResultsTable } from './results-table.ts';
import { askOverTls } from './tls/ask.ts';

const { values } = parseArgs({ options: { renewals: { type: 'string', default: '90' } } });
const wanted = Number(values.renewals);
const fullCount = 90;
const host = 'hub.example.org';
const hubCount = 3;
const keptConnections = 8;
/** Two thirds of it are over before any of the hubs looks once more, so that each look renews. */
const lifeSeconds = 3;

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
await using disposables = new AsyncDisposableStack();
const pebble = disposables.use(await startPebble({ lifeSeconds }));
const ca = await pebble.root();
const postgres = disposables.use(await startPostgres());
const database_url = await postgres.createDatabase();
const cookie_secret = randomBytes(32).toString('hex');
const ports: number[] = [];
const hubs: HubProcess[] = [];
for (let index = 0; index < hubCount; index += 1) {
  const port = await freePort();
  const folder = disposables.use(await createHubFolder());
  await folder.configure({
    Hub: {
      public_url: `https://${host}/`,
      bind_url: `https://127.0.0.1:${port}/`,
      // The authority asks the first, whichever orders.
      redirect_bind_url: `http://127.0.0.1:${index === 0 ? pebble.ports.http : await freePort()}/`,
      database_url,
      cookie_secret,
      instance_url: folder.apiUrl.replace(/hub\/api$/, ''),
      acme: { accept_terms: true, directory: pebble.directory, challenge: 'http-01' },
    },
  });
  ports.push(port);
  hubs.push(await folder.start(undefined, { NODE_EXTRA_CA_CERTS: pebble.certificateFile }));
}
const renewals = () =>
  hubs.reduce((sum, hub) => sum + hub.logged(/^certificate renewed by ACME/).length, 0);
const ask = (port: number, further: Partial<Parameters<typeof askOverTls>[0]> = {}) =>
  askOverTls({ port, host, ca, takesEnded: true, ...further });
await Promise.all(
  ports.map((port) => until(async () => (await answerOf(port)) === 200, 'an answer over https')),
);

const counts = { kept: 0, fresh: 0, resumed: 0 };
const failures: string[] = [];
let reopened = 0;
let isOver = false;
const load = ports.flatMap((port) => [
  ...Array.from({ length: keptConnections }, () => useKept(port)),
  useFresh(port),
  useResumed(port),
]);
const before = renewals();
const since = performance.now();
while (renewals() - before < wanted) {
  await new Promise((resolve) => setTimeout(resolve, 250));
  if (failures.length > 100) break;
}
const seconds = (performance.now() - since) / 1_000;
const made = renewals() - before;
const byHub = hubs.map((hub) => hub.logged(/^certificate renewed by ACME/).length);
// What comes last stays.
await pebble.end();
await until(async () => new Set(await served()).size === 1, 'all serve the same certificate');
isOver = true;
await Promise.all(load);
const [last] = await served();
const newest = await newestOf();
const refusedByHubs = hubs.flatMap((hub) => hub.logged(/^could not/)).length;

const isGood = failures.length === 0 && reopened === 0 && last === newest;
await writeResultsTable({
  name: 'renewals',
  heading: 'Certificates renewed under load',
  database: 'PostgreSQL',
  setting:
    `Three hubs, of which any orders and all serve; pebble, which refuses half of the nonces, gives out certificates of ${lifeSeconds} seconds, so that each look of a hub renews. ` +
    'Clients check the name and the authority, and take a certificate that has just ended.',
  rows: [
    ['renewals', `${made} in ${seconds.toFixed(0)} s (${byHub.join(', ')} by each hub)`, '', ''],
    [`requests on ${keptConnections * hubCount} kept connections`, counts.kept.toLocaleString('en'), '', ''],
    ['requests with a handshake of their own', counts.fresh.toLocaleString('en'), '', ''],
    ['requests with one that goes on with an earlier session', counts.resumed.toLocaleString('en'), '', ''],
    ['failed requests', String(failures.length), '0', failures.length === 0 ? 'yes' : 'NO'],
    ['kept connections that were closed', String(reopened), '0', reopened === 0 ? 'yes' : 'NO'],
    ['hubs that serve the newest in the end', last === newest ? 'all' : 'not all', 'all', last === newest ? 'yes' : 'NO'],
  ],
  isPartial: wanted !== fullCount,
});
for (const failure of new Set(failures)) process.stderr.write(`${failure}\n`);
if (refusedByHubs > 0) process.stderr.write(`${refusedByHubs} troubles in the logs of the hubs\n`);
if (!isGood) process.exitCode = 1;

async function answerOf(port: number): Promise<number | undefined> {
  return (await ask(port).catch(() => undefined))?.status;
}

async function count(kind: keyof typeof counts, request: () => ReturnType<typeof ask>) {
  counts[kind] += 1;
  try {
    const answer = await request();
    if (answer.status !== 200) failures.push(`${kind}: ${answer.status}`);
    return answer;
  } catch (error) {
    failures.push(`${kind}: ${(error as Error).message}`);
    return undefined;
  }
}

async function useKept(port: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  let socket: unknown;
  while (!isOver) {
    const answer = await count('kept', () => ask(port, { agent }));
    if (socket !== undefined && answer !== undefined && answer.socket !== socket) reopened += 1;
    socket = answer?.socket;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  agent.destroy();
}

async function useFresh(port: number): Promise<void> {
  while (!isOver) await count('fresh', () => ask(port));
}

/** With a session of whichever hub was asked before. */
async function useResumed(port: number): Promise<void> {
  let session: Buffer | undefined;
  for (let at = ports.indexOf(port); !isOver; at += 1) {
    const answer = await count('resumed', () => ask(ports[at % hubCount] ?? port, { session }));
    session = answer?.socket.getSession() ?? session;
  }
}

function certificateAt(port: number): Promise<PeerCertificate> {
  return new Promise((resolve, reject) => {
    const address = { host: '127.0.0.1', port, servername: host, rejectUnauthorized: false };
    const socket = connect(address, () => {
      resolve(socket.getPeerCertificate());
      socket.destroy();
    });
    socket.on('error', reject);
  });
}

async function served(): Promise<string[]> {
  return (await Promise.all(ports.map(certificateAt))).map(({ serialNumber }) => serialNumber);
}

/** Serial number of the certificate that was logged last to be in force. */
async function newestOf(): Promise<string | undefined> {
  const all = await Promise.all(ports.map(certificateAt));
  const ends = hubs.flatMap((hub) =>
    hub.logged(/^certificate renewed by ACME/).map(({ until }) => Date.parse(String(until))),
  );
  const latest = Math.max(...ends);
  return all.find(({ valid_to }) => Math.abs(Date.parse(valid_to) - latest) < 1_000)?.serialNumber;
}
