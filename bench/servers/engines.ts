import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { busyImage, startDocker } from '../../test/support/docker-engine.ts';
import { freePort } from '../../test/support/free-port.ts';
import { startKubernetesApi } from '../../test/support/kubernetes-api.ts';
import { startSlurm } from '../../test/support/slurm.ts';
import { openAside } from './aside.ts';

/** Where the servers of a measurement run. */
export interface BenchEngine extends AsyncDisposable {
  /** Sections of the configuration. */
  readonly config: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly servers: number;
  /** What the engine runs, by the servers: one entry for each container, job or process, in no order. */
  running(apiUrl: string): Promise<readonly string[]>;
  /** What a server is there: `container`. */
  readonly noun: string;
  readonly heading: string;
  readonly setting: string;
  /** Whether the hub has costs that come with the first server, to be left out of those of each. */
  readonly hasClient: boolean;
}

const app = join(import.meta.dirname, '..', '..', 'fixtures', 'apps', 'trivial.pl');
const busyServer = `
at=$(echo $HUB_SERVICE_URL | tail -c +8)
mkdir -p /tmp$HUB_SERVICE_PREFIX; echo ok > /tmp$HUB_SERVICE_PREFIX/index.html
trap exit TERM
httpd -f -h /tmp -p $at & wait`;
const ownApp = 'The app is `fixtures/apps/trivial.pl`, a web server of twenty lines of Perl';

const standsBack =
  'Engine and servers, elsewhere on other machines, stand back behind the hub here (nice 10).';

const open: Readonly<Record<string, () => Promise<BenchEngine>>> = {
  async 'local-process'() {
    return {
      config: { Spawner: { cmd: ['perl', app] } },
      servers: 200,
      running: processesOf,
      noun: 'process',
      heading: '',
      setting: `${ownApp}. Hub`,
      hasClient: false,
      [Symbol.asyncDispose]: async () => undefined,
    };
  },

  async docker() {
    const { value: engine, end } = await startAside((cgroup) =>
      startDocker({ args: [`--cgroup-parent=${cgroup}`] }),
    );
    return {
      config: {
        Spawner: { class: 'docker', cmd: ['sh', '-c', busyServer] },
        DockerSpawner: { host: engine.host, image: busyImage, network: 'host' },
      },
      servers: 100,
      running: async () =>
        (await engine.docker.listContainers({ all: true })).map(
          ({ Labels }) => Labels['hub.server-id'] ?? '',
        ),
      noun: 'container',
      heading: ', in containers',
      setting: `The app is the web server of busybox in containers of Docker Engine (storage driver vfs, network of the machine). ${standsBack} Engine, hub`,
      hasClient: true,
      [Symbol.asyncDispose]: end,
    };
  },

  async slurm() {
    const { value: cluster, end } = await startAside(() => startSlurm({ cpus: 256 }));
    const port = await freePort();
    return {
      config: {
        Hub: {
          hub_bind_url: `http://127.0.0.1:${port}`,
          // Of this machine, but not an address that every machine takes for its own.
          hub_connect_url: `http://hub.localhost:${port}`,
        },
        Spawner: { class: 'slurm', cmd: ['perl', app] },
        SlurmSpawner: { slurm_conf: cluster.configuration, poll_interval: 2 },
      },
      servers: 100,
      running: async () =>
        (await cluster.run('squeue', '--noheader', '--format=%k'))
          .split('\n')
          .filter((comment) => comment !== ''),
      noun: 'job',
      heading: ', as jobs of Slurm',
      setting: `${ownApp}, in batch jobs of a Slurm of one node. ${standsBack} Slurm, hub`,
      hasClient: true,
      [Symbol.asyncDispose]: end,
    };
  },

  async kubernetes() {
    const { value: cluster, end } = await startAside(() =>
      startKubernetesApi({ nodes: [{ name: 'node-1', pods: 500 }] }),
    );
    const port = await freePort();
    const { namespace, kubeconfigPath: kubeconfig } = cluster;
    return {
      config: {
        Hub: {
          hub_bind_url: `http://127.0.0.1:${port}`,
          hub_connect_url: `http://hub.localhost:${port}`,
        },
        Spawner: { class: 'kubernetes', cmd: ['perl', app] },
        // Pods share the network of the machine, each with an address of its own.
        KubernetesSpawner: {
          ...{ kubeconfig, namespace, image: 'app:1', run_as_user: 1000 },
          listen_ip: '{pod_ip}',
        },
      },
      servers: 100,
      running: async () => {
        const answer = await cluster.request('GET', `/api/v1/namespaces/${namespace}/pods`);
        const pods = answer.body.items as { metadata: { labels: Record<string, string> } }[];
        return pods.map(({ metadata }) => metadata.labels['hub/server-id'] ?? '');
      },
      noun: 'pod',
      heading: ', in pods of Kubernetes',
      setting: `${ownApp}, in pods of the stand-in of Kubernetes in \`fixtures/kubernetes\`, not of a real cluster. ${standsBack} Stand-in, hub`,
      hasClient: true,
      [Symbol.asyncDispose]: end,
    };
  },
};

/** Starts the engine of a spawner; throws for one there is none for. */
export async function openEngine(spawner: string): Promise<BenchEngine> {
  const starts = open[spawner];
  if (starts === undefined) {
    throw new Error(`no engine "${spawner}"; there are: ${Object.keys(open).join(', ')}`);
  }
  return await starts();
}

/** Starts an engine that stands back behind the hub; `end` ends it. */
async function startAside<Engine extends AsyncDisposable>(
  start: (cgroup: string) => Promise<Engine>,
): Promise<{ readonly value: Engine; end(): Promise<void> }> {
  await using stack = new AsyncDisposableStack();
  const aside = stack.use(await openAside());
  const value = stack.use(await aside.run(() => start(aside.cgroup)));
  const started = stack.move();
  return { value, end: () => started.disposeAsync() };
}

/** The processes of a hub's servers. */
async function processesOf(apiUrl: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
      if (!environment.includes(`HUB_API_URL=${apiUrl}`)) return [];
      return [/HUB_SERVICE_PREFIX=([^\0]*)/.exec(environment)?.[1] ?? ''];
    }),
  );
  return found.flat();
}
