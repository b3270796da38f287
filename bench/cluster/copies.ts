import { readdirSync, readFileSync } from 'node:fs';

/** Watches the table of processes for services and servers that run twice. */
export interface CopyWatch extends Disposable {
  /** What was seen twice in two looks in a row, and as which processes. */
  readonly doubles: readonly string[];
}

const intervalMs = 250;

/** Looks every quarter of a second. A copy must be seen twice: a process that forks has two for a moment. */
export function watchCopies(directories: readonly string[]): CopyWatch {
  const found = new Map<string, string>();
  let before = new Map<string, readonly number[]>();
  const timer = setInterval(() => {
    const now = new Map([...countCopies(directories)].filter(([, pids]) => pids.length > 1));
    for (const [what, pids] of now) {
      const former = before.get(what);
      if (former === undefined || found.has(what)) continue;
      const all = [`${what} at ${new Date().toISOString()}`, `before ${former.join(', ')}`];
      found.set(what, [...all, ...pids.map(describeProcess)].join('; '));
    }
    before = now;
  }, intervalMs);
  return {
    get doubles() {
      return [...found.values()];
    },
    [Symbol.dispose]: () => clearInterval(timer),
  };
}

/** Processes of each service and each user's server, by what they are. */
export function countCopies(
  directories: readonly string[],
): ReadonlyMap<string, readonly number[]> {
  const found = new Map<string, number[]>();
  for (const pid of readdirSync('/proc')
    .map(Number)
    .filter((each) => each > 0)) {
    const what = describe(pid, directories);
    if (what !== undefined) found.set(what, [...(found.get(what) ?? []), pid]);
  }
  return found;
}

function describe(pid: number, directories: readonly string[]): string | undefined {
  const environment = read(`/proc/${pid}/environ`);
  if (!directories.some((directory) => environment.includes(directory))) return undefined;
  const command = read(`/proc/${pid}/cmdline`);
  const service = /cluster-service=([\w-]+)/.exec(command)?.[1];
  if (service !== undefined) return `service ${service}`;
  if (!command.includes('trivial.pl')) return undefined;
  const prefix = /\0HUB_SERVICE_PREFIX=([^\0]+)/.exec(`\0${environment}`)?.[1];
  return prefix === undefined ? undefined : `server ${prefix}`;
}

function describeProcess(pid: number): string {
  const stat = read(`/proc/${pid}/stat`);
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const command = read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ');
  const tag = /\0HUB_PROCESS_TAG=([^\0]+)/.exec(read(`/proc/${pid}/environ`))?.[1];
  return `${pid} of ${parent} (${state}) tag ${tag} ${command}`;
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}
