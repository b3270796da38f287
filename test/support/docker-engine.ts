import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import Docker from 'dockerode';
import { afterAll, beforeAll } from 'vitest';
import { killProcessesOf } from './leftovers.ts';
import { pathOf, requires } from './requires.ts';
import { isAlive } from './server-hub.ts';
import { until } from './test-hub.ts';

/** A container engine of its own: nothing of it is shared with another one on this machine. */
export interface TestEngine extends AsyncDisposable {
  /** For `DockerSpawner.host`. */
  readonly host: string;
  readonly docker: Docker;
  /** Starts it again after `stop`, with what it had. */
  start(): Promise<void>;
  /** Ends the engine, and its containers with it. */
  stop(): Promise<void>;
  /** Keeps its socket open and answers nothing. */
  freeze(): Promise<void>;
  thaw(): void;
  /** Makes an image for a processor architecture that no machine of the tests has. */
  importForeignImage(image: string): Promise<void>;
}

/** A small image of a shell, a web server and tools; its programs run as user 1000. */
export const busyImage = 'busy:1';

/** Whether Docker can run containers here; it needs root. See requires. */
export function hasDocker(): boolean {
  return requires('root', 'dockerd', 'busybox');
}

export interface EngineOptions {
  /** Further arguments of dockerd. */
  readonly args?: readonly string[];
  /** Folder of images and containers; one of its own by default. */
  readonly dataRoot?: string;
}

/** Starts a Docker Engine that changes nothing of the machine's network, with `busyImage`. */
export async function startDocker(options: EngineOptions = {}): Promise<TestEngine> {
  const engine = createDocker(options);
  await engine.start();
  return engine;
}

function createDocker({ args = [], dataRoot }: EngineOptions): TestEngine {
  const directory = mkdtempSync(join(tmpdir(), 'hub-docker-'));
  const at = (name: string) => join(directory, name);
  const host = `unix://${at('docker.sock')}`;
  const docker = new Docker({ socketPath: at('docker.sock') });
  let daemon: ChildProcess | undefined;

  async function start(): Promise<void> {
    const log = openSync(at('log'), 'a');
    const folders = [
      '--data-root',
      dataRoot ?? at('data'),
      '--exec-root',
      at('exec'),
      '--pidfile',
      at('pid'),
    ];
    const network = ['--iptables=false', '--bridge=none', '--default-address-pool', addressPool()];
    daemon = spawn(
      pathOf('dockerd'),
      ['--host', host, '--storage-driver=vfs', ...folders, ...network, ...args],
      { stdio: ['ignore', log, log] },
    );
    const ended = once(daemon, 'exit').then(() => {
      throw new Error(`dockerd ended: ${readFileSync(at('log'), 'utf8').slice(-2000)}`);
    });
    ended.catch(() => undefined);
    await Promise.race([ended, until(() => answers(docker), 'the engine answers')]);
    await importBusybox(docker, directory);
  }

  async function stop(): Promise<void> {
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const exit = once(daemon, 'exit');
    daemon.kill('SIGCONT');
    daemon.kill('SIGTERM');
    await exit;
  }

  // Containers outlive the engine.
  const endWithProcess = () => killProcessesOf(directory);
  process.once('exit', endWithProcess);
  return {
    host,
    docker,
    start,
    stop,

    async freeze() {
      daemon?.kill('SIGSTOP');
      // Each thread stops for itself: until the last one has, requests may still be answered.
      const tasks = `/proc/${daemon?.pid}/task`;
      const isStopped = (task: string) =>
        /^State:\s+T/m.test(readFileSync(`${tasks}/${task}/status`, 'utf8'));
      await until(() => readdirSync(tasks).every(isStopped), 'the engine stands still');
    },

    thaw: () => daemon?.kill('SIGCONT'),

    async importForeignImage(image) {
      const root = at('foreign');
      const folder = (name: string) => join(root, name);
      mkdirSync(folder('layer/bin'), { recursive: true });
      writeFileSync(folder('layer/bin/sh'), 'no program of this machine', { mode: 0o755 });
      tar(folder('layer'), folder('layer.tar'));
      const layer = createHash('sha256')
        .update(readFileSync(folder('layer.tar')))
        .digest('hex');
      const config = {
        architecture: process.arch === 'arm64' ? 'amd64' : 'arm64',
        os: 'linux',
        config: { User: '1000', Env: ['PATH=/bin'] },
        rootfs: { type: 'layers', diff_ids: [`sha256:${layer}`] },
      };
      const manifest = [{ Config: 'config.json', RepoTags: [image], Layers: ['layer.tar'] }];
      writeFileSync(folder('config.json'), JSON.stringify(config));
      writeFileSync(folder('manifest.json'), JSON.stringify(manifest));
      tar(root, at('foreign.tar'));
      await finished(docker, await docker.loadImage(at('foreign.tar')));
    },

    async [Symbol.asyncDispose]() {
      process.off('exit', endWithProcess);
      daemon?.kill('SIGCONT');
      if (await answers(docker)) {
        for (const { Id } of await docker.listContainers({ all: true })) {
          await docker.getContainer(Id).remove({ force: true, v: true });
        }
        await docker.pruneNetworks();
      }
      await stop();
      endContainerd(at('exec/containerd/containerd.pid'));
      unmountBelow(directory);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** An engine for the tests of the surrounding `describe` or file: started before and ended after them. */
export function useDocker(options: EngineOptions = {}): TestEngine {
  const engine = createDocker(options);
  beforeAll(() => engine.start(), 60_000);
  afterAll(() => engine[Symbol.asyncDispose](), 60_000);
  return engine;
}

/** An address pool of this process: networks of engines that run at the same time must not overlap. */
function addressPool(): string {
  return `base=10.${100 + (process.pid % 100)}.0.0/16,size=24`;
}

async function answers(docker: Docker): Promise<boolean> {
  return docker.ping().then(
    () => true,
    () => false,
  );
}

/** The engine starts it, and leaves it behind when it is killed. */
function endContainerd(pidFile: string): void {
  if (!existsSync(pidFile)) return;
  const pid = Number(readFileSync(pidFile, 'utf8'));
  if (isAlive(pid)) process.kill(pid, 'SIGKILL');
}

/** Engines leave the network namespace of containers with the machine's network mounted. */
function unmountBelow(directory: string): void {
  for (const line of readFileSync('/proc/self/mounts', 'utf8').split('\n')) {
    const [, point = ''] = line.split(' ');
    if (point.startsWith(`${directory}/`)) execFileSync('umount', ['--lazy', point]);
  }
}

const applets = [
  'sh',
  'httpd',
  'sleep',
  'echo',
  'cat',
  'ls',
  'id',
  'env',
  'touch',
  'yes',
  'awk',
  'head',
  'tail',
  'uname',
  'mkdir',
  'dd',
];

async function importBusybox(docker: Docker, directory: string): Promise<void> {
  if (
    await docker
      .getImage(busyImage)
      .inspect()
      .then(Boolean, () => false)
  )
    return;
  await importImage(docker, makeBusyFolder(directory), busyImage, busyChanges);
}

/** What the image says beside its files, as lines of a Dockerfile. */
export const busyChanges = [
  'USER 1000:1000',
  'WORKDIR /tmp',
  'ENV PATH=/bin',
  'ENV FROM_IMAGE=yes',
];

/** Makes the folder of `busyImage` in another one. */
export function makeBusyFolder(directory: string): string {
  const root = join(directory, 'busy');
  mkdirSync(join(root, 'bin'), { recursive: true });
  for (const folder of ['home', 'tmp', 'www', 'etc']) mkdirSync(join(root, folder));
  chmodSync(join(root, 'tmp'), 0o1777);
  cpSync(pathOf('busybox'), join(root, 'bin', 'busybox'));
  for (const applet of applets) symlinkSync('busybox', join(root, 'bin', applet));
  return root;
}

/** Makes an image of a folder. */
export async function importImage(
  docker: Docker,
  root: string,
  image: string,
  changes: readonly string[] = [],
): Promise<void> {
  const archive = join(dirname(root), `${image.replaceAll(/\W/g, '-')}.tar`);
  tar(root, archive);
  const [repo, tag] = image.split(':');
  await finished(docker, await docker.importImage(archive, { repo, tag, changes }));
  rmSync(archive);
}

export function tar(folder: string, archive: string): void {
  const owner = ['--owner=0', '--group=0'];
  execFileSync('tar', ['--create', '--file', archive, '--directory', folder, ...owner, '.']);
}

async function finished(docker: Docker, stream: NodeJS.ReadableStream): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(stream, (error) => (error ? reject(error) : resolve()));
  });
}
