import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** What a cgroup can limit; the names of the controllers of both versions. */
export type Controller = 'memory' | 'cpu' | 'pids';

/** Where the hub can make cgroups. Version 1 has a hierarchy for each controller, version 2 one for all. */
export interface CgroupHierarchies {
  /** The hub's own cgroup of version 2. */
  readonly own: string | undefined;
  /**
   * Where cgroups of version 2 have controllers: not below the hub's own, since no cgroup with processes can
   * hand on controllers ("no internal processes", cgroups(7)).
   */
  readonly controlled: string | undefined;
  readonly places: Readonly<Partial<Record<Controller, ControllerPlace>>>;
}

/** Where the cgroups that a controller limits are made. */
export interface ControllerPlace {
  readonly version: 1 | 2;
  readonly folder: string;
}

const controllers = ['memory', 'cpu', 'pids'] as const;

let found: CgroupHierarchies | undefined;

/** The hierarchies of this machine; looked up once. Nothing here throws. */
export function findHierarchies(): CgroupHierarchies {
  found ??= lookUp();
  return found;
}

function lookUp(): CgroupHierarchies {
  const own = folderIn('cgroup2', '');
  const controlled = own === undefined ? undefined : controlledBase(own);
  const handedOn = controlled === undefined ? [] : wordsOf(controlled, 'cgroup.subtree_control');
  const places: Partial<Record<Controller, ControllerPlace>> = {};
  for (const controller of controllers) {
    if (controlled !== undefined && handedOn.includes(controller)) {
      places[controller] = { version: 2, folder: controlled };
      continue;
    }
    const folder = folderIn('cgroup', controller);
    if (folder !== undefined) places[controller] = { version: 1, folder };
  }
  return { own, controlled, places };
}

/**
 * The cgroup whose children get controllers: the one of the systemd unit where the hub runs in a subgroup of
 * it (`DelegateSubgroup=`, systemd.resource-control(5)); the root of the hierarchy or, in a container, of its
 * namespace, after the processes in it have moved to a child.
 */
function controlledBase(own: string): string | undefined {
  const parent = dirname(own);
  if (/\.(?:service|scope)$/.test(basename(parent))) return handOn(parent) ? parent : undefined;
  // A unit without a subgroup could not be started again while controllers are handed on in it.
  if (/\.(?:service|scope|slice)$/.test(basename(own))) return undefined;
  if (ownPath('') !== '/') return undefined;
  if (handOn(own)) return own;
  return moveAside(own) && handOn(own) ? own : undefined;
}

function handOn(folder: string): boolean {
  const available = wordsOf(folder, 'cgroup.controllers');
  const wanted = controllers.filter((controller) => available.includes(controller));
  const missing = wanted.filter(
    (controller) => !wordsOf(folder, 'cgroup.subtree_control').includes(controller),
  );
  if (wanted.length === 0) return false;
  if (missing.length === 0) return true;
  return write(folder, 'cgroup.subtree_control', missing.map((each) => `+${each}`).join(' '));
}

/** Moves the processes of a cgroup, the hub among them, to a child of it. */
function moveAside(folder: string): boolean {
  const child = join(folder, 'hub-main');
  try {
    mkdirSync(child, { recursive: true });
  } catch {
    return false;
  }
  const pids = wordsOf(folder, 'cgroup.procs').filter((pid) => pid !== '0');
  return pids.every((pid) => write(child, 'cgroup.procs', pid));
}

/** Folder of the hub's own cgroup in the hierarchy of a controller; undefined where it is not mounted. */
function folderIn(type: 'cgroup' | 'cgroup2', controller: '' | Controller): string | undefined {
  const mounts = read('/proc/self/mountinfo').split('\n');
  for (const line of mounts) {
    // Root within the file system, mount point, type, super options (proc_pid_mountinfo(5)).
    const [, root = '', mountPoint = '', mountType, options = ''] =
      /^\d+ \d+ \S+ (\S+) (\S+) .* - (\S+) \S+ (\S+)$/.exec(line) ?? [];
    const isMeant =
      mountType === type && (controller === '' || options.split(',').includes(controller));
    if (!isMeant) continue;
    const path = ownPath(controller);
    const isBelow = path === root || path.startsWith(root === '/' ? root : `${root}/`);
    if (!isBelow || path.includes('/..')) return undefined;
    return join(unescapeOctal(mountPoint), root === '/' ? path : path.slice(root.length));
  }
  return undefined;
}

/** Path of the hub's cgroup in the hierarchy of a controller; empty for version 2 (cgroups(7)). */
function ownPath(controller: '' | Controller): string {
  for (const line of read('/proc/self/cgroup').split('\n')) {
    const [, names = '', path = ''] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (path !== '' && (controller === '' ? names === '' : names.split(',').includes(controller)))
      return path;
  }
  return '';
}

/** Spaces and the like stand as `\040` in mountinfo. */
function unescapeOctal(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

function wordsOf(folder: string, file: string): string[] {
  return read(join(folder, file)).split(/\s+/).filter(Boolean);
}

function read(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

function write(folder: string, file: string, text: string): boolean {
  try {
    writeFileSync(join(folder, file), text);
    return true;
  } catch {
    return false;
  }
}
