import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll } from 'vitest';
import type { Denial } from '../../fixtures/kubernetes/admission.ts';
import type { ClusterOptions } from '../../fixtures/kubernetes/cluster.ts';
import type { Fault } from '../../fixtures/kubernetes/faults.ts';
import type { Image } from '../../fixtures/kubernetes/images.ts';
import type { NodeOptions } from '../../fixtures/kubernetes/kubelet.ts';
import type { Order, OrderAnswer } from '../../fixtures/kubernetes/main.ts';
import type { StorageBehaviour } from '../../fixtures/kubernetes/storage.ts';
import { freePort } from './free-port.ts';
import { offers, pathOf, requires } from './requires.ts';

/** A small Kubernetes in a process of its own; see `fixtures/kubernetes/README.md` for each of these. */
export interface KubernetesApi extends AsyncDisposable {
  readonly url: string;
  /** Of the administrator, with a client certificate. */
  readonly kubeconfigPath: string;
  readonly caFile: string;
  readonly adminToken: string;
  /** Namespace in which the *restricted* standard is enforced, with the service account `hub`. */
  readonly namespace: string;
  /** Folder of volumes and certificates, removed at the end. */
  readonly directory: string;
  /** Process id of the cluster. */
  readonly pid: number;
  /** A request as the administrator. */
  request(method: string, path: string, body?: unknown, type?: string): Promise<KubernetesAnswer>;
  /** A request with another token, or without any where it is empty. */
  requestAs(
    token: string,
    method: string,
    path: string,
    body?: unknown,
    type?: string,
  ): Promise<KubernetesAnswer>;
  /** Token of a service account. */
  createToken(namespace: string, account: string): Promise<string>;
  /** Path of a kubeconfig with the token of a service account. */
  writeKubeconfig(namespace: string, account: string): Promise<string>;

  addNode(node: NodeOptions): Promise<void>;
  loseNode(
    name: string,
    options?: { readonly killsProcesses?: boolean; readonly evictsAfterMs?: number },
  ): Promise<void>;
  returnNode(name: string): Promise<void>;
  removeNode(name: string): Promise<void>;
  setImage(name: string, image: Image): Promise<void>;
  setStorage(storageClass: string, behaviour: StorageBehaviour): Promise<void>;
  setDenials(denials: readonly Denial[]): Promise<void>;
  evictPod(namespace: string, name: string, message: string): Promise<void>;
  killForMemory(namespace: string, name: string, container?: string): Promise<void>;
  pidOf(namespace: string, name: string, container?: string): Promise<number | undefined>;
  runningPods(): Promise<number>;

  addFault(fault: Fault): Promise<void>;
  clearFaults(): Promise<void>;
  /** Connections are refused until `startApi`; pods go on. */
  stopApi(): Promise<void>;
  startApi(): Promise<void>;
  cutWatches(): Promise<void>;
  expireWatches(): Promise<void>;
  openWatches(): Promise<number>;
  /** Whether the cluster has a metrics server, as it has unless told. */
  setMetrics(isThere: boolean): Promise<void>;
  compact(options?: { readonly refusesWithStatus?: boolean }): Promise<void>;
  requests(): Promise<readonly string[]>;
  /** Ends it and everything it started. */
  stop(): Promise<void>;
}

export interface KubernetesAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  // biome-ignore lint/suspicious/noExplicitAny: the objects of the API, whose fields tests pick out.
  readonly body: any;
}

const script = join(import.meta.dirname, '../../fixtures/kubernetes/main.ts');
const namespace = 'hub-servers';

/** Whether the API server can run, which makes certificates. */
export function canServeKubernetes(): boolean {
  return requires('openssl');
}

/** Whether pods can run: namespaces and mounts need root on Linux. */
export function canRunPods(): boolean {
  return (
    offers('Linux', process.platform === 'linux') &&
    requires('root', 'perl', 'setpriv', 'unshare') &&
    canServeKubernetes()
  );
}

/** Starts the cluster with one node unless others are given, and waits until it answers. */
export async function startKubernetesApi(
  options: Omit<ClusterOptions, 'directory' | 'port'> = {},
): Promise<KubernetesApi> {
  pathOf('openssl');
  const directory = await mkdtemp(join(tmpdir(), 'hub-kubernetes-'));
  const settings: ClusterOptions = { ...options, directory, port: await freePort() };
  const child = spawn(process.execPath, [script, JSON.stringify(settings)], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let errors = '';
  child.stderr?.on('data', (chunk) => {
    errors += String(chunk);
  });
  const ended = once(child, 'exit').then(() => {
    throw new Error(`the cluster ended: ${errors.slice(-2000)}`);
  });
  ended.catch(() => {});
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const [line] = (await Promise.race([once(lines, 'line'), ended])) as [string];
  const facts = JSON.parse(line) as Pick<
    KubernetesApi,
    'url' | 'kubeconfigPath' | 'caFile' | 'adminToken'
  >;

  let orders = 0;
  const waiting = new Map<number, (answer: OrderAnswer) => void>();
  child.on('message', (answer: OrderAnswer) => waiting.get(answer.id)?.(answer));
  async function call<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    orders += 1;
    const id = orders;
    const answered = new Promise<OrderAnswer>((resolve) => waiting.set(id, resolve));
    child.send({ id, method, args } satisfies Order);
    const { result, error } = await Promise.race([answered, ended]);
    waiting.delete(id);
    if (error !== undefined) throw new Error(`${method}: ${error}`);
    return result as T;
  }

  // No connection is kept: the server closes one that is idle, maybe just as it is used again.
  const agent = new Agent({ ca: readFileSync(facts.caFile) });
  const requestAs = (token: string, method: string, path: string, body?: unknown, type?: string) =>
    send(agent, new URL(path, facts.url), { token, method, body, type });

  async function stop(): Promise<void> {
    agent.destroy();
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.kill('SIGTERM');
      await exited;
    }
    await rm(directory, { recursive: true, force: true });
  }

  const api: KubernetesApi = {
    ...facts,
    namespace,
    directory,
    pid: child.pid as number,
    request: (method, path, body, type) => requestAs(facts.adminToken, method, path, body, type),
    requestAs,
    createToken: (...args) => call('createToken', ...args),
    writeKubeconfig: (...args) => call('writeKubeconfig', ...args),
    addNode: (...args) => call('addNode', ...args),
    loseNode: (...args) => call('loseNode', ...args),
    returnNode: (...args) => call('returnNode', ...args),
    removeNode: (...args) => call('removeNode', ...args),
    setImage: (...args) => call('setImage', ...args),
    setStorage: (...args) => call('setStorage', ...args),
    setDenials: (...args) => call('setDenials', ...args),
    evictPod: (...args) => call('evictPod', ...args),
    killForMemory: (...args) => call('killForMemory', ...args),
    pidOf: (...args) => call('pidOf', ...args),
    runningPods: () => call('runningPods'),
    addFault: (...args) => call('addFault', ...args),
    clearFaults: () => call('clearFaults'),
    stopApi: () => call('stopApi'),
    startApi: () => call('startApi'),
    cutWatches: () => call('cutWatches'),
    expireWatches: () => call('expireWatches'),
    openWatches: () => call('openWatches'),
    setMetrics: (isThere) => call('setMetrics', isThere),
    compact: (...args) => call('compact', ...args),
    requests: () => call('requests'),
    stop,
    [Symbol.asyncDispose]: stop,
  };
  await createNamespace(api);
  return api;
}

/** Starts a cluster for the tests of the surrounding `describe` and ends it after them. */
export function useKubernetesApi(
  options: Parameters<typeof startKubernetesApi>[0] = {},
): () => KubernetesApi {
  let api: KubernetesApi | undefined;
  beforeAll(async () => {
    api = await startKubernetesApi(options);
  });
  afterAll(async () => {
    await api?.stop();
  });
  return () => {
    if (api === undefined) throw new Error('the cluster has not been started');
    return api;
  };
}

async function createNamespace(api: KubernetesApi): Promise<void> {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const metadata = { name: namespace, labels };
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'hub' } };
  const answers = [
    await api.request('POST', '/api/v1/namespaces', {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata,
    }),
    await api.request('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, account),
  ];
  for (const { status, body } of answers)
    if (status !== 201) throw new Error(`the namespace cannot be made: ${JSON.stringify(body)}`);
}

interface Sent {
  readonly token: string;
  readonly method: string;
  readonly body: unknown;
  readonly type: string | undefined;
}

async function send(agent: Agent, url: URL, sent: Sent): Promise<KubernetesAnswer> {
  const { token, method, body, type = 'application/json' } = sent;
  const payload = body === undefined ? undefined : JSON.stringify(body);
  const outgoing = request(url, {
    agent,
    method,
    headers: {
      accept: 'application/json',
      ...(token === '' ? {} : { authorization: `Bearer ${token}` }),
      // Node.js says the length of a DELETE's body only where it is told to.
      ...(payload === undefined
        ? {}
        : { 'content-type': type, 'content-length': Buffer.byteLength(payload) }),
    },
  });
  outgoing.end(payload);
  const [response] = await once(outgoing, 'response');
  const received = await text(response);
  const isJson = /json/.test(String(response.headers['content-type']));
  return {
    status: response.statusCode,
    headers: response.headers,
    body: isJson ? JSON.parse(received) : received,
  };
}
