import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type ApiContender, adminToken, createUsers } from '../api/contender.ts';
import { databaseFile, startHub } from '../api/hub.ts';
import { exactCpuSeconds, proxyCore } from '../gateway/pinned-process.ts';
import { fillAuditLog } from './fill.ts';
import { measuredHeader, type Sample, startSampling, stopSampling } from './switch.ts';

/** One kind of request. */
export interface Work {
  readonly label: string;
  readonly method: string;
  /** Done to one user after the other, by number. */
  path(index: number): string;
  body?(index: number): unknown;
  /** How many are sent to be measured. */
  readonly count: number;
}

/** A hub that records or does not. */
export interface Side extends AsyncDisposable {
  /** Sends requests that were not sent before, one after the other. */
  send(work: Work, count: number): Promise<void>;
  /** Sends `work.count` requests, of which it records half. */
  measure(work: Work): Promise<Sample[]>;
  /** Moves what was recorded into the indexed log. Microseconds of CPU. */
  move(): Promise<number>;
}

const switchable = pathToFileURL(join(import.meta.dirname, 'switchable.ts'));

export async function startSide(options: {
  readonly directory: string;
  readonly members: readonly string[];
  /** How much is in the audit log already. */
  readonly auditRows: number;
  /** SQLite, unless given. */
  readonly postgres?: { readonly url: string; readonly pid: number } | undefined;
}): Promise<Side> {
  const { directory, members, auditRows, postgres } = options;
  const url = postgres?.url ?? `sqlite:${join(directory, databaseFile)}`;
  await mkdir(directory, { recursive: true });
  await fillAuditLog({ url, directory, rows: auditRows });
  const switchPath = join(directory, 'switch');
  const hub = await startHub({
    core: proxyCore,
    directory,
    program: 'source',
    nodeOptions: [`--import=${switchable}?switch=${encodeURIComponent(switchPath)}`],
    databaseUrl: url,
  });
  await createUsers(hub, members, 500);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sent = new Map<string, number>();

  async function sendSome(work: Work, count: number): Promise<void> {
    const start = sent.get(work.label) ?? 0;
    sent.set(work.label, start + count);
    for (let index = start; index < start + count; index += 1)
      await send({ hub, agent }, work, index);
  }

  return {
    send: sendSome,
    async measure(work) {
      await startSampling(switchPath, postgres === undefined ? [] : connectionsOf(postgres));
      // What follows ends the last one.
      await sendSome(work, work.count + 1);
      return stopSampling(switchPath);
    },
    async move() {
      const pids = [hub.process.pid, ...(postgres === undefined ? [] : connectionsOf(postgres))];
      const cpu = () => pids.reduce((sum, pid) => sum + exactCpuSeconds({ pid }), 0) * 1e6;
      const before = cpu();
      // Before it is read, all of it is there.
      await send({ hub, agent }, readLog, 0);
      return cpu() - before;
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await hub[Symbol.asyncDispose]();
    },
  };
}

const readLog: Work = {
  label: 'read the log',
  method: 'GET',
  path: () => '/audit?limit=1',
  count: 1,
};

/** Processes of PostgreSQL that answer to the hub of a database. */
function connectionsOf({ url, pid }: { readonly url: string; readonly pid: number }): number[] {
  const name = new URL(url).pathname.slice(1);
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1')
    .split(' ')
    .filter((child) => child !== '' && isOf(child, name))
    .map(Number);
}

function isOf(pid: string, database: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(database);
  } catch {
    // It has ended meanwhile.
    return false;
  }
}

function send(
  { hub, agent }: { readonly hub: ApiContender; readonly agent: Agent },
  { method, path, body }: Work,
  index: number,
): Promise<void> {
  const url = hub.apiUrl + path(index);
  const headers = {
    authorization: `token ${adminToken}`,
    'content-type': 'application/json',
    [measuredHeader]: '1',
  };
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, agent, headers }, (answer) => {
      const { statusCode = 0 } = answer;
      answer.resume();
      answer.once('end', () => {
        if (statusCode < 300) resolve();
        else reject(new Error(`${method} ${url} was answered with ${statusCode}`));
      });
    });
    sent.once('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body(index)));
  });
}
