import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { afterAll, beforeAll } from 'vitest';
import { busyChanges, busyImage, makeBusyFolder, tar } from './docker-engine.ts';
import { pathOf, requires } from './requires.ts';
import { until } from './test-hub.ts';

/** A Podman of its own: nothing of it is shared with another one on this machine. */
export interface TestPodman {
  /** For `DockerSpawner.host`. */
  readonly host: string;
  readonly docker: Docker;
  /** Ends what answers on the socket; containers go on. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

/** Whether Podman is installed and can run containers here; it needs root. See requires. */
export function hasPodman(): boolean {
  return requires('root', 'podman', 'busybox');
}

/** A Podman with `busyImage` for the tests of the surrounding `describe`, which changes nothing of the network. */
export function usePodman(): TestPodman {
  const directory = mkdtempSync(join(tmpdir(), 'hub-podman-'));
  const at = (name: string) => join(directory, name);
  const docker = new Docker({ socketPath: at('socket') });
  const host = `unix://${at('socket')}`;
  const env = {
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: directory,
    CONTAINERS_CONF: at('containers.conf'),
    CONTAINERS_STORAGE_CONF: at('storage.conf'),
  };
  let service: ChildProcess | undefined;

  async function start(): Promise<void> {
    const log = openSync(at('log'), 'a');
    const args = ['system', 'service', '--time=0', host];
    service = spawn(pathOf('podman'), args, { env, stdio: ['ignore', log, log] });
    const ended = once(service, 'exit').then(() => {
      throw new Error(`podman ended: ${readFileSync(at('log'), 'utf8').slice(-2000)}`);
    });
    ended.catch(() => undefined);
    const answers = () =>
      docker.ping().then(
        () => true,
        () => false,
      );
    await Promise.race([ended, until(answers, 'Podman answers')]);
  }

  async function stop(): Promise<void> {
    if (service === undefined || service.exitCode !== null || service.signalCode !== null) return;
    const exit = once(service, 'exit');
    service.kill('SIGTERM');
    await exit;
  }

  const endWithProcess = () => service?.kill('SIGTERM');
  beforeAll(async () => {
    process.once('exit', endWithProcess);
    writeFileSync(
      at('storage.conf'),
      `[storage]\ndriver = "vfs"\nrunroot = "${at('run')}"\ngraphroot = "${at('data')}"\n`,
    );
    writeFileSync(
      at('containers.conf'),
      // The runtime of Docker, whichever else is there. Podman raises these limits to what not every machine allows it.
      `[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n` +
        `[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\ntmp_dir = "${at('tmp')}"\n`,
    );
    tar(makeBusyFolder(directory), at('busy.tar'));
    const changes = busyChanges.map((change) => `--change=${change}`);
    // As its API has it, names without a registry are of Docker Hub.
    const image = `docker.io/library/${busyImage}`;
    execFileSync(pathOf('podman'), ['import', '--quiet', ...changes, at('busy.tar'), image], {
      env,
    });
    await start();
  });
  afterAll(async () => {
    process.off('exit', endWithProcess);
    await stop();
    execFileSync(pathOf('podman'), ['rm', '--all', '--force', '--time=0', '--volumes'], { env });
    rmSync(directory, { recursive: true, force: true });
  });
  return { host, docker, start, stop };
}
