import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { offers, pathOf, requires } from './requires.ts';
import { projectDirectory } from './services.ts';
import { until } from './test-hub.ts';

/** Where cgroups of version 2 are mounted. */
function cgroupMount(): string {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
  return /^\d+ \d+ \S+ \/ (\S+) .* - cgroup2 /m.exec(mounts)?.[1] ?? '';
}

/** Whether a systemd of its own can be started here: as root, in namespaces. */
export function hasSystemd(): boolean {
  const inNamespaces = ['--pid', '--fork', '--mount', '--cgroup', 'true'];
  return (
    requires('root', 'systemd', 'unshare', 'perl') &&
    offers('cgroups of version 2', cgroupMount() !== '') &&
    offers('namespaces', spawnSync(pathOf('unshare'), inNamespaces).status === 0)
  );
}

/** A systemd that supervises the hub of this project, which it finds in /opt/hub. */
export interface Systemd extends AsyncDisposable {
  /** Runs a command where systemd runs; the code and what it wrote. */
  run(command: string, ...args: readonly string[]): Promise<CommandResult>;
  /** A property of hub.service. */
  property(name: string): Promise<string>;
  /** What the hub wrote. */
  output(): string;
  /** Runs the commands of a page of docs/how-to under a heading, word by word; each must succeed. */
  follow(page: string, heading: string, block: number): Promise<void>;
  /** Writes a file of the hub's folder, /var/lib/hub. */
  write(name: string, text: string): Promise<void>;
}

export interface CommandResult {
  readonly code: number;
  readonly output: string;
}

/**
 * Starts systemd as the first process of namespaces of its own, with the project in /opt/hub and an empty
 * /var/lib/hub. Nothing outside is changed: no unit may start what a machine does at its boot, which empties /tmp.
 */
export async function startSystemd(): Promise<Systemd> {
  const folder = await mkdtemp(join(tmpdir(), 'hub-systemd-'));
  const state = join(folder, 'state');
  const log = join(folder, 'output.log');
  await mkdir(state);
  await writeFile(log, '');
  // Without what a machine starts besides, such as the journal.
  const surroundings = `[Unit]
DefaultDependencies=no
Wants=
After=
[Service]
StandardOutput=append:/run/hub-test/output.log
StandardError=append:/run/hub-test/output.log
`;
  await writeFile(join(folder, 'test.conf'), surroundings);
  const alone = '[Unit]\nDefaultDependencies=no\n';
  await writeFile(join(folder, 'alone.conf'), alone);

  const cgroup = join(cgroupMount(), `hub-systemd-${process.pid}-${Date.now()}`);
  await mkdir(cgroup);
  const script = `set -e
echo $$ > ${cgroup}/cgroup.procs
exec unshare --fork --kill-child --pid --mount --cgroup --uts --ipc sh -ec '
mount --make-rprivate /
mount -t proc proc /proc
umount -l /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system/hub.service.d /run/systemd/system/hub.socket.d /run/lock /run/hub-test
mount --bind ${folder} /run/hub-test
mount -t tmpfs tmpfs /opt
mkdir /opt/hub
mount --bind ${projectDirectory} /opt/hub
mount -t tmpfs tmpfs /var/lib
mkdir /var/lib/hub
mount --bind ${state} /var/lib/hub
mkdir /run/etc /run/work
mount -t overlay -o lowerdir=/etc,upperdir=/run/etc,workdir=/run/work overlay /etc
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /var/tmp
cp /run/hub-test/alone.conf /run/systemd/system/empty.target
cp /run/hub-test/alone.conf /run/systemd/system/hub.socket.d/
cp /run/hub-test/test.conf /run/systemd/system/hub.service.d/
exec env container=test ${pathOf('systemd')} --system --unit=empty.target --log-target=null'`;
  const unshare = spawn('sh', ['-c', script], { stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = once(unshare, 'exit');

  let first = '';
  const systemd: Systemd = {
    run: (command, ...args) =>
      new Promise((resolve) => {
        const everything = ['--target', first, '--all', '--', command, ...args];
        execFile('nsenter', everything, (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }),
        );
      }),
    async property(name) {
      const { output } = await systemd.run('systemctl', 'show', 'hub', '--value', '-p', name);
      return output.trim();
    },
    async follow(page, heading, block) {
      const text = readFileSync(join(projectDirectory, 'docs', 'how-to', page), 'utf8');
      const [, section = ''] = text.split(`\n## ${heading}\n`);
      const blocks = [
        ...(section.split('\n## ', 1)[0]?.matchAll(/^```sh\n([\s\S]*?)^```$/gm) ?? []),
      ];
      const commands = blocks[block]?.[1];
      if (commands === undefined) throw new Error(`${page} has no block ${block} under ${heading}`);
      const { code, output } = await systemd.run('sh', '-ec', commands);
      if (code !== 0) throw new Error(`${commands}ended with ${code}:\n${output}`);
    },
    output: () => readFileSync(log, 'utf8'),
    async write(name, text) {
      await mkdir(dirname(join(state, name)), { recursive: true });
      await writeFile(join(state, name), text);
    },
    async [Symbol.asyncDispose]() {
      writeFileSync(join(cgroup, 'cgroup.kill'), '1');
      await ended;
      await until(() => isRemoved(cgroup), 'the cgroups of systemd are gone');
      await rm(folder, { recursive: true });
    },
  };
  try {
    await until(async () => {
      first = childOf(unshare.pid ?? 0);
      return (
        first !== '' && (await systemd.run('systemctl', 'is-active', 'empty.target')).code === 0
      );
    }, 'systemd is there');
  } catch (error) {
    await systemd[Symbol.asyncDispose]();
    throw error;
  }
  return systemd;
}

function childOf(pid: number): string {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
}

function isRemoved(folder: string): boolean {
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory()) isRemoved(join(folder, entry.name));
    rmdirSync(folder);
  } catch {
    // Its processes are about to end.
  }
  return !existsSync(folder);
}
