import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll } from 'vitest';
import { freePort } from './free-port.ts';
import { killProcessesOf } from './leftovers.ts';
import { pathOf, requires } from './requires.ts';
import { until } from './test-hub.ts';

/** A cluster of one node: munged, slurmctld and slurmd of Debian on loopback. */
export interface SlurmCluster extends AsyncDisposable {
  /** Path of slurm.conf. */
  readonly configuration: string;
  /** Runs a program of Slurm. */
  run(program: string, ...args: string[]): Promise<string>;
  /** Ends the controller; jobs go on. */
  stopController(): Promise<void>;
  startController(): Promise<void>;
}

/** Whether Slurm can run here; it needs root. See requires. */
export function hasSlurm(): boolean {
  return requires('root', 'slurm', 'runuser', 'unshare');
}

/**
 * Starts a cluster with the partitions `short`, which is the default, and `closed`, in which jobs wait
 * until `scontrol update PartitionName=closed State=UP`.
 */
export async function startSlurm({ cpus = 64 } = {}): Promise<SlurmCluster> {
  const daemons = dirname(pathOf('slurm'));
  const directory = mkdtempSync(join(tmpdir(), 'hub-slurm-'));
  chmodSync(directory, 0o755);
  const file = (name: string) => join(directory, name);
  const children = new Set<ChildProcess>();
  // Jobs outlive the daemons.
  const endWithProcess = () => killProcessesOf(directory);
  process.once('exit', endWithProcess);

  function begin(program: string, args: readonly string[], user?: { uid: number; gid: number }) {
    const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', SLURM_CONF: file('daemons.conf') };
    const child = spawn(program, args, { stdio: 'ignore', env, ...user });
    children.add(child);
    child.once('exit', () => children.delete(child));
    return child;
  }

  const munge = accountOf('munge');
  mkdirSync(file('munge'), { mode: 0o755 });
  writeFileSync(file('munge/key'), randomBytes(1024), { mode: 0o400 });
  for (const name of ['munge', 'munge/key']) chownSync(file(name), munge.uid, munge.gid);
  const mungeArgs = Object.entries({
    'key-file': 'key',
    socket: 'socket',
    'pid-file': 'pid',
    'log-file': 'log',
    'seed-file': 'seed',
  }).map(([option, name]) => `--${option}=${file(`munge/${name}`)}`);
  begin(join(daemons, 'munged'), ['--foreground', '--force', ...mungeArgs], munge);

  const node = hostname().split('.')[0] ?? 'localhost';
  const [controllerPort, nodePort] = [await freePort(), await freePort()];
  for (const name of ['state', 'spool']) mkdirSync(file(name));
  const configurationOf = (messageTimeoutSeconds: number) => `ClusterName=hub
SlurmctldHost=${node}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=${file('munge/socket')}
SlurmUser=root
SlurmctldPort=${controllerPort}
SlurmdPort=${nodePort}
StateSaveLocation=${file('state')}
SlurmdSpoolDir=${file('spool')}
SlurmctldPidFile=${file('slurmctld.pid')}
SlurmdPidFile=${file('slurmd.pid')}
SlurmctldLogFile=${file('slurmctld.log')}
SlurmdLogFile=${file('slurmd.log')}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
MpiDefault=none
ReturnToService=2
SchedulerParameters=sched_interval=1,bf_interval=1
MessageTimeout=${messageTimeoutSeconds}
KillWait=2
MinJobAge=30
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/linux
SlurmdParameters=config_overrides
DefMemPerCPU=10
NodeName=${node} NodeAddr=127.0.0.1 CPUs=${cpus} RealMemory=64000 State=UNKNOWN
PartitionName=short Nodes=${node} Default=YES MaxTime=60 State=UP
PartitionName=closed Nodes=${node} MaxTime=60 State=DOWN
`;
  // The programs ask a controller that is away for as long as that.
  writeFileSync(file('slurm.conf'), configurationOf(5));
  // A job whose node has not confirmed its launch by then is ended, which a busy machine must not cause.
  writeFileSync(file('daemons.conf'), configurationOf(100));
  const env = { PATH: '/usr/bin:/bin', SLURM_CONF: file('slurm.conf') };
  const run = async (program: string, ...args: string[]) =>
    (await promisify(execFile)(program, args, { env })).stdout;

  let controller: ChildProcess | undefined;
  async function startController(): Promise<void> {
    controller = begin(pathOf('slurm'), ['-D', '-i']);
    await until(
      () =>
        run('sinfo', '--noheader').then(
          () => true,
          () => false,
        ),
      'the controller of Slurm answers',
    );
  }

  await startController();
  // Without the files of root's account, which every job's login shell would run: pyenv's take a second and a lock.
  const bare = ['--mount', 'sh', '-c', 'mount -t tmpfs none /root && exec "$@"', 'sh'];
  begin(pathOf('unshare'), [...bare, join(daemons, 'slurmd'), '-D', '-N', node]);
  await until(
    async () => /\b(idle|mix)\b/.test(await run('sinfo', '--noheader', '-p', 'short')),
    'the node is ready for jobs',
  );

  async function stopController(): Promise<void> {
    if (controller === undefined) return;
    const exited = once(controller, 'exit');
    // It writes down what it knows, which it would otherwise do every few seconds.
    controller.kill('SIGTERM');
    await exited;
    controller = undefined;
  }

  return {
    configuration: file('slurm.conf'),
    run,
    startController,
    stopController,
    async [Symbol.asyncDispose]() {
      if (controller !== undefined) {
        await run('scancel', '--signal=KILL', '--full', '--state=RUNNING').catch(() => undefined);
        await run('scancel', '--state=PENDING').catch(() => undefined);
        await until(
          async () => (await run('squeue', '--noheader')).trim() === '',
          'no job is left',
        );
      }
      process.off('exit', endWithProcess);
      const ended = [...children].map((child) => once(child, 'exit'));
      for (const child of children) child.kill('SIGTERM');
      await Promise.all(ended);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Starts a cluster for the tests of the surrounding `describe` and ends it after them. */
export function useSlurm(): () => SlurmCluster {
  let cluster: SlurmCluster | undefined;
  beforeAll(async () => {
    cluster = await startSlurm();
  });
  afterAll(async () => {
    await cluster?.[Symbol.asyncDispose]();
  });
  return () => {
    if (cluster === undefined) throw new Error('Slurm has not been started');
    return cluster;
  };
}

function accountOf(name: string): { uid: number; gid: number } {
  const read = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
  return { uid: read('-u'), gid: read('-g') };
}
