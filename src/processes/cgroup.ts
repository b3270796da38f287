import { hash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pid as ownPid } from 'node:process';

/**
 * One cgroup (version 2) for each tag, in the cgroup of the hub. What a process starts stays in it,
 * whatever it does to its parents, its session and its environment. Nothing here throws: where the
 * hub may not make cgroups, none is made and all are empty.
 */
export interface Cgroups {
  /** Makes the cgroup of a tag and returns its folder; undefined where that is not possible. */
  make(tag: string): Promise<string | undefined>;
  /** Pids of the processes in it and below. */
  members(tag: string): readonly number[];
  /** Sends SIGKILL to all of them at once, so that none can fork in between. */
  kill(tag: string): void;
  /**
   * Whether it has had members and has none any more. A process that forks in that moment would still
   * be in it, so nothing needs to be looked for again. False where that is not known.
   */
  isDeserted(tag: string): boolean;
  /** Removes it once it is empty. */
  remove(tag: string): Promise<void>;
}

/** Not one process is in a cgroup of its own. */
export const noCgroups: Cgroups = {
  make: async () => undefined,
  members: () => [],
  kill: () => {},
  isDeserted: () => false,
  remove: async () => {},
};

/** The cgroups of this machine. */
export const systemCgroups: Cgroups = {
  async make(tag) {
    const folder = folderOf(tag);
    if (folder === undefined) return undefined;
    try {
      await mkdir(folder);
    } catch (thrown) {
      if (!isExisting(thrown)) return undefined;
    }
    return folder;
  },
  members: (tag) => membersBelow(folderOf(tag)),
  kill(tag) {
    const folder = folderOf(tag);
    // A process of the hub's own account might have moved the hub into it.
    if (folder === undefined || membersBelow(folder).includes(ownPid)) return;
    try {
      writeFileSync(join(folder, 'cgroup.kill'), '1');
    } catch {
      // It is not there, or Linux is older than 5.14: its members get signals one by one.
    }
  },
  isDeserted(tag) {
    const folder = folderOf(tag);
    if (folder === undefined) return false;
    // One that a command could not join has used no processor time.
    const usedMicroseconds = readValue(join(folder, 'cpu.stat'), 'usage_usec') ?? 0;
    return usedMicroseconds > 0 && readValue(join(folder, 'cgroup.events'), 'populated') === 0;
  },
  async remove(tag) {
    const folder = folderOf(tag);
    if (folder !== undefined) await removeBelow(folder).catch(() => undefined);
  },
};

/**
 * Lets a command join a cgroup before it begins, so that it cannot fork outside of it: the shell
 * writes down its own pid and becomes the command. The shell would not pass on every environment.
 */
export function joiningCommand(folder: string, command: readonly string[]): readonly string[] {
  const script = '{ echo $$ >"$0/cgroup.procs"; } 2>/dev/null; unset PWD OLDPWD SHLVL; exec "$@"';
  return ['/bin/sh', '-c', script, folder, ...command];
}

/** Whether `joiningCommand` hands an environment on as it is. */
export function isShellProof(environment: Readonly<Record<string, string>>): boolean {
  return Object.keys(environment).every(
    (name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !/^(?:PWD|OLDPWD|SHLVL|_|ENV)$/.test(name),
  );
}

function folderOf(tag: string): string | undefined {
  const own = findOwnFolder();
  return own && join(own, `hub-${hash('sha256', tag).slice(0, 24)}`);
}

let ownFolder: string | undefined | null = null;

/** Folder of the hub's own cgroup. */
function findOwnFolder(): string | undefined {
  if (ownFolder === null) ownFolder = readOwnFolder();
  return ownFolder;
}

function readOwnFolder(): string | undefined {
  try {
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
    // Root within the file system and mount point (proc_pid_mountinfo(5), fields 4 and 5).
    const [, root = '', mountPoint = ''] =
      /^\d+ \d+ \S+ (\S+) (\S+) .* - cgroup2 /m.exec(mounts) ?? [];
    const [, path = ''] = /^0::(\/.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? [];
    const isBelow = path === root || path.startsWith(root === '/' ? root : `${root}/`);
    if (mountPoint === '' || !isBelow || path.includes('/..')) return undefined;
    const below = root === '/' ? path : path.slice(root.length);
    return join(unescapeOctal(mountPoint), below);
  } catch {
    return undefined;
  }
}

/** Spaces and the like stand as `\040` in mountinfo. */
function unescapeOctal(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

function membersBelow(folder: string | undefined): readonly number[] {
  if (folder === undefined) return [];
  try {
    const text = readFileSync(join(folder, 'cgroup.procs'), 'latin1');
    // 0 stands for a process of another pid namespace.
    const pids = text.split('\n').flatMap((line) => (Number(line) > 0 ? [Number(line)] : []));
    const below = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => membersBelow(join(folder, entry.name)));
    return [...pids, ...below];
  } catch {
    return [];
  }
}

/** A number of one of the kernel's flat keyed files; undefined where it is not told. */
function readValue(file: string, key: string): number | undefined {
  try {
    const [, value] = new RegExp(`^${key} (\\d+)$`, 'm').exec(readFileSync(file, 'latin1')) ?? [];
    return value === undefined ? undefined : Number(value);
  } catch {
    return undefined;
  }
}

async function removeBelow(folder: string): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true });
  for (const entry of entries) {
    if (entry.isDirectory()) await removeBelow(join(folder, entry.name));
  }
  await rmdir(folder);
}

function isExisting(thrown: unknown): boolean {
  return thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST';
}
