/**
 * The REST API beside JupyterHub's, each hub alone on one core with 10,000 users in SQLite, the load on
 * the other core: `npm run bench -- api --rounds=3 --seconds=3`. Writes bench/results/api.md.
 */
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  type ApiContender,
  adminToken,
  ask,
  createUsers,
  issueToken,
  userNames,
} from './api/contender.ts';
import { root, startHub } from './api/hub.ts';
import { copyUser, jupyterHubVersion, startJupyterHub } from './api/jupyterhub.ts';
import { recordServers } from './api/large-database.ts';
import { type ApiReport, type Goal, type Line, toMarkdown } from './api/report.ts';
import { proxyCore } from './gateway/pinned-process.ts';
import { machineName } from './gateway/report.ts';
import { type Contender, type Measurement, measureInterleaved, ratioOf } from './gateway/rounds.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '3' },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);
const connections = 16;
/** As many as ask for lists at the same moment: administrators' pages, a culler, a script. */
const fewConnections = 4;
const pageLength = 200;
const namesPerRequest = 500;
/** JupyterHub makes some tens of users in a second. */
const namesMadeByPeer = 500;
const names = userNames(10_000);
const manyNames = userNames(100_000);
const serverCount = 2_000;
/** How long a program that has nothing to do is left alone before its memory is read. */
const settleMs = 8_000;

const core = proxyCore;
const progress = (line: string) => process.stderr.write(`${line}\n`);
const mebibytes = ({ process: hub }: ApiContender) => hub.residentBytes() / 2 ** 20;

execFileSync(process.execPath, [join(root, 'scripts', 'build.ts')], { stdio: 'ignore' });
const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
await using disposables = new AsyncDisposableStack();
disposables.defer(() => rm(directory, { recursive: true, force: true }));

const hubDirectories = { source: join(directory, 'source'), package: join(directory, 'package') };
const jupyterHubDirectory = join(directory, 'jupyterhub');
const goals: Goal[] = [];
const lines: Line[] = [];
await measureSideBySide();
await measureIdle();
await measureLargeDatabase();

const report: ApiReport = {
  heading: `${new Date().toISOString().slice(0, 10)}, ${machineName()}, Node ${process.version.slice(1)}, JupyterHub ${jupyterHubVersion()}`,
  rounds,
  seconds,
  connections,
  goals,
  lines,
};
const markdown = toMarkdown(report);
const results = join(import.meta.dirname, 'results');
await mkdir(results, { recursive: true });
await writeFile(join(results, 'api.md'), markdown);
process.stdout.write(markdown);

async function measureSideBySide(): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const hub = stack.use(
    await startHub({ core, directory: hubDirectories.source, program: 'source' }),
  );
  const packaged = stack.use(
    await startHub({ core, directory: hubDirectories.package, program: 'package' }),
  );
  const jupyterHub = stack.use(await startJupyterHub({ core, directory: jupyterHubDirectory }));

  const madeByPeer = names.slice(0, namesMadeByPeer);
  const create = async (contender: ApiContender, some: readonly string[]) => {
    const result = await createUsers(contender, some, namesPerRequest);
    progress(`created at ${result.usersPerSecond.toFixed(0)} users/s`);
    return result;
  };
  const ours = await create(hub, names);
  const theirs = await create(jupyterHub, madeByPeer);
  await create(packaged, names);
  copyUser(jupyterHubDirectory, madeByPeer[0] ?? '', names.slice(namesMadeByPeer));
  goals.push({
    label: `create users, ${namesPerRequest} in a request`,
    figure: ours.usersPerSecond / theirs.usersPerSecond,
    byCpu: theirs.cpuMicros / ours.cpuMicros,
    goal: 20,
    bound: 'least',
    unit: '×',
  });
  for (const [name, result] of [
    ['hub', ours],
    ['JupyterHub', theirs],
  ] as const) {
    lines.push({
      name: `${name}, create users`,
      perSecond: result.usersPerSecond,
      cpuMicros: result.cpuMicros,
    });
  }

  const self = names[names.length / 2] ?? '';
  const lastPage = `/users?limit=${pageLength}&offset=${names.length - pageLength}`;
  const reads: readonly Read[] = [
    { label: 'first page of 200 of 10,000 users', path: `/users?limit=${pageLength}`, goal: 10 },
    { label: 'last page of 200 of 10,000 users', path: lastPage, goal: 10 },
    { label: 'GET /user, of a service', path: '/user', goal: 15 },
    { label: 'GET /users/<name>', path: `/users/${self}`, goal: 12 },
    { label: 'GET /user, of a user', path: '/user', userName: self },
  ];
  const contenders: Contender[] = [];
  for (const read of reads) {
    for (const [name, contender] of [
      ['hub', hub],
      ['JupyterHub', jupyterHub],
    ] as const) {
      const token =
        read.userName === undefined ? adminToken : await issueToken(contender, read.userName);
      contenders.push({
        name: `${name}, ${read.label}`,
        url: contender.apiUrl + read.path,
        headers: { Authorization: `token ${token}` },
        processes: [contender.process],
      });
    }
  }
  const measured = await measureInterleaved({ contenders, rounds, seconds, connections, progress });
  for (const [index, { label, goal }] of reads.entries()) {
    const pair = measured.slice(index * 2, index * 2 + 2) as [Measurement, Measurement];
    goals.push(comparison(label, pair, goal));
    lines.push(...pair.map(lineOf));
  }
  const [first, , last] = measured as [Measurement, Measurement, Measurement];
  goals.push({
    label: 'last page against the first',
    figure: ratioOf(last.roundRequestsPerSecond, first.roundRequestsPerSecond),
    byCpu: ratioOf(first.roundCpuMicros, last.roundCpuMicros),
    goal: 0.95,
    bound: 'least',
    unit: '×',
  });

  // The package does the same work, of which only the memory is of interest.
  await measureInterleaved({
    contenders: contenders
      .filter(({ name }) => name.startsWith('hub'))
      .map((contender, index) => ({
        ...contender,
        headers: { Authorization: `token ${adminToken}` },
        url: packaged.apiUrl + (reads[index]?.path ?? ''),
        processes: [packaged.process],
      })),
    rounds: 1,
    seconds,
    connections,
    progress,
  });
  await new Promise((resolve) => setTimeout(resolve, settleMs));
  for (const [name, contender, goal] of [
    ['from source', hub, 240],
    ['from the package', packaged, 200],
  ] as const) {
    goals.push(
      memoryGoal(`resident memory ${name}, after all of this`, mebibytes(contender), goal),
    );
  }
  lines.push({ name: 'JupyterHub, after all of this', residentMiB: mebibytes(jupyterHub) });
}

/** Memory of hubs that have just started on 10,000 users. */
async function measureIdle(): Promise<void> {
  for (const [program, goal] of [
    ['source', 140],
    ['package', 130],
  ] as const) {
    await using hub = await startHub({ core, directory: hubDirectories[program], program });
    await ask(hub, 'GET', '/user');
    await new Promise((resolve) => setTimeout(resolve, settleMs));
    const name = program === 'source' ? 'from source' : 'from the package';
    goals.push(memoryGoal(`resident memory ${name}, idle`, mebibytes(hub), goal));
  }
  await using jupyterHub = await startJupyterHub({ core, directory: jupyterHubDirectory });
  await new Promise((resolve) => setTimeout(resolve, settleMs));
  lines.push({ name: 'JupyterHub, idle', residentMiB: mebibytes(jupyterHub) });
}

async function measureLargeDatabase(): Promise<void> {
  const options = { core, directory: join(directory, 'large'), program: 'source' } as const;
  {
    await using hub = await startHub(options);
    const { usersPerSecond } = await createUsers(hub, manyNames, namesPerRequest);
    progress(`created 100,000 users at ${usersPerSecond.toFixed(0)} users/s`);
  }
  await recordServers(options.directory, manyNames.slice(0, serverCount));
  const startedAt = performance.now();
  await using hub = await startHub(options);
  await ask(hub, 'GET', '/user');
  const seconds_ = (performance.now() - startedAt) / 1000;
  goals.push({
    label: `start to first answer with ${manyNames.length.toLocaleString('en')} users and ${serverCount.toLocaleString('en')} servers on record`,
    figure: seconds_,
    goal: 2,
    bound: 'most',
    unit: ' s',
  });
  const headers = { Authorization: `token ${adminToken}` };
  const page = `${hub.apiUrl}/users?limit=${pageLength}`;
  const processes = [hub.process];
  const contenders: Contender[] = [
    { name: 'hub, first page of 100,000 users', url: page, headers, processes },
    {
      name: 'hub, last page of 100,000 users',
      url: `${page}&offset=${manyNames.length - pageLength}`,
      headers,
      processes,
    },
    {
      name: 'hub, page in the middle of 100,000 users',
      url: `${page}&offset=${manyNames.length / 2}`,
      headers,
      processes,
    },
    {
      name: 'hub, all pages of 100,000 users in turn',
      url: page,
      headers,
      processes,
      script: await writePagesScript(join(directory, 'pages.lua')),
    },
  ];
  const measured = await measureInterleaved({ contenders, rounds, seconds, connections, progress });
  lines.push(...measured.map(lineOf));
  // With as many connections as above, an answer waits for fifteen others on the one core.
  const [ofFew] = await measureInterleaved({
    contenders: [
      {
        name: `hub, first page of 100,000 users, ${fewConnections} connections`,
        url: page,
        headers,
        processes,
      },
    ],
    rounds,
    seconds,
    connections: fewConnections,
    progress,
  });
  if (ofFew !== undefined) lines.push(lineOf(ofFew));
  for (const [count, measurement] of [
    [connections, measured[0]],
    [fewConnections, ofFew],
  ] as const) {
    goals.push({
      label: `first page of 200 of 100,000 users, p99 with ${count} connections`,
      figure: measurement?.p99Ms ?? Number.NaN,
      goal: 20,
      bound: 'most',
      unit: ' ms',
    });
  }
}

/** Asks for one page after the other: more than the hub remembers. */
async function writePagesScript(file: string): Promise<string> {
  await writeFile(
    file,
    `local offset = 0
function request()
  offset = (offset + ${pageLength}) % ${manyNames.length}
  return wrk.format(nil, wrk.path .. "&offset=" .. offset)
end
`,
  );
  return file;
}

interface Read {
  readonly label: string;
  readonly path: string;
  /** Asks with this user's own token. */
  readonly userName?: string;
  /** How many times JupyterHub it must be. */
  readonly goal?: number;
}

function comparison(
  label: string,
  [ours, theirs]: [Measurement, Measurement],
  goal?: number,
): Goal {
  return {
    label,
    figure: ratioOf(ours.roundRequestsPerSecond, theirs.roundRequestsPerSecond),
    byCpu: ratioOf(theirs.roundCpuMicros, ours.roundCpuMicros),
    ...(goal === undefined ? {} : { goal }),
    bound: 'least',
    unit: '×',
  };
}

function memoryGoal(label: string, figure: number, goal: number): Goal {
  return { label, figure, goal, bound: 'most', unit: ' MiB' };
}

function lineOf({ name, requestsPerSecond, cpuMicros, p50Ms, p99Ms }: Measurement): Line {
  return { name, perSecond: requestsPerSecond, cpuMicros, p50Ms, p99Ms };
}
