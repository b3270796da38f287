import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { canRunPods, startKubernetesApi, useKubernetesApi } from '../support/kubernetes-api.ts';
import { podManifest } from '../support/kubernetes-pods.ts';
import { pathOf, requires } from '../support/requires.ts';
import { isAlive } from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

const webServer = `
  const server = require('node:http').createServer((request, response) => response.end(process.env.POD_IP));
  server.listen(8080, process.env.POD_IP, () => console.log('listening'));
  process.on('SIGTERM', () => { console.log('leaving'); process.exit(0); });`;

describe.skipIf(!canRunPods())('pods of the small Kubernetes', () => {
  const cluster = useKubernetesApi({ backOffMs: 100 });
  const base = () => `/api/v1/namespaces/${cluster().namespace}`;
  const pods = () => `${base()}/pods`;
  const podOf = async (name: string) => (await cluster().request('GET', `${pods()}/${name}`)).body;
  const stateOf = async (name: string) =>
    (await podOf(name)).status.containerStatuses?.[0].state ?? {};
  const logOf = async (name: string, query = '') =>
    (await cluster().request('GET', `${pods()}/${name}/log${query}`)).body;

  async function eventsOf(name: string): Promise<string[]> {
    const query = `fieldSelector=involvedObject.name%3D${name}`;
    const { body } = await cluster().request('GET', `${base()}/events?${query}`);
    return body.items
      .toSorted(
        (
          one: { metadata: { resourceVersion: string } },
          other: { metadata: { resourceVersion: string } },
        ) => Number(one.metadata.resourceVersion) - Number(other.metadata.resourceVersion),
      )
      .map(({ reason, message }: { reason: string; message: string }) => `${reason}: ${message}`);
  }

  async function create(manifest: object, plural = 'pods'): Promise<void> {
    const answer = await cluster().request('POST', `${base()}/${plural}`, manifest);
    expect(answer.body.message).toBeUndefined();
    expect(answer.status).toBe(201);
  }

  const remove = (name: string, query = '') =>
    cluster().request('DELETE', `${pods()}/${name}${query}`);
  const untilPhase = (name: string, phase: string) =>
    until(async () => (await podOf(name)).status.phase === phase, `${name} is ${phase}`);
  const untilGone = (name: string) =>
    until(async () => (await podOf(name)).code === 404, `${name} is gone`);
  const untilWaiting = (name: string, reason: string) =>
    until(async () => (await stateOf(name)).waiting?.reason === reason, `${name}: ${reason}`);
  const untilLogged = (name: string, line: string) =>
    until(async () => String(await logOf(name)).includes(line), `${name} logs ${line}`);

  test('a pod runs its command as a process with its environment, and completes', async () => {
    await create(
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'token' }, stringData: { key: 's3' } },
      'secrets',
    );
    const command = ['sh', '-c', 'id -u; hostname; echo $GREETING'];
    const env = [
      { name: 'KEY', valueFrom: { secretKeyRef: { name: 'token', key: 'key' } } },
      { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'GREETING', value: 'hello $(POD) with $(KEY), $$(POD) $(NONE)' },
    ];
    await create(podManifest('completes', { command, env }));
    await untilPhase('completes', 'Succeeded');
    expect(await logOf('completes')).toBe(
      '1000\ncompletes\nhello completes with s3, $(POD) $(NONE)\n',
    );
    expect(await logOf('completes', '?tailLines=1')).toMatch(/^hello .*\n$/);
    expect((await stateOf('completes')).terminated).toMatchObject({
      exitCode: 0,
      reason: 'Completed',
    });
    expect(await eventsOf('completes')).toEqual([
      'Scheduled: Successfully assigned hub-servers/completes to node-1',
      'Pulling: Pulling image "example.org/small:1"',
      expect.stringMatching(/^Pulled: Successfully pulled image "example.org\/small:1" in /),
      'Created: Created container: main',
      'Started: Started container main',
    ]);
    await remove('completes');
    await untilGone('completes');
  });

  test('two pods listen on the same port, each on its own address, and end on SIGTERM', async () => {
    const env = [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }];
    const readinessProbe = { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 };
    const command = [process.execPath, '-e', webServer];
    for (const name of ['web-1', 'web-2'])
      await create(podManifest(name, { command, env, readinessProbe }));
    for (const name of ['web-1', 'web-2']) {
      await until(
        async () => (await podOf(name)).status.containerStatuses?.[0].ready === true,
        `${name} is ready`,
      );
      const { status } = await podOf(name);
      expect(status.conditions).toContainEqual(
        expect.objectContaining({ type: 'Ready', status: 'True' }),
      );
      const answer = await fetch(`http://${status.podIP}:8080/`);
      expect(await answer.text()).toBe(status.podIP);
    }
    const pid = (await cluster().pidOf(cluster().namespace, 'web-1')) ?? 0;
    expect(isAlive(pid)).toBe(true);
    const marked = await remove('web-1');
    expect(marked.body.metadata).toMatchObject({
      deletionTimestamp: expect.any(String),
      deletionGracePeriodSeconds: 5,
    });
    await untilGone('web-1');
    expect(isAlive(pid)).toBe(false);
    expect(await eventsOf('web-1')).toContain('Killing: Stopping container main');
    await remove('web-2', '?gracePeriodSeconds=0');
    expect((await podOf('web-2')).code).toBe(404);
    await until(async () => (await cluster().runningPods()) === 0, 'no process is left');
  });

  test.skipIf(!requires('bash'))(
    'pods start while file systems of others come and go',
    async () => {
      const folder = await mkdtemp(join(tmpdir(), 'hub-mounts-'));
      const script = `cd "$1" && while read -t 0.01 line; [ $? -gt 128 ]; do
      for i in 1 2 3 4 5 6 7 8; do mkdir $i && mount -t tmpfs tmpfs $i; done
      for i in 1 2 3 4 5 6 7 8; do umount --lazy $i && rmdir $i; done
    done`;
      const others = spawn(pathOf('bash'), ['-c', script, 'bash', folder], {
        stdio: ['pipe', 'ignore', 'inherit'],
      });
      await until(() => existsSync(join(folder, '1')), 'they come');
      const names = Array.from({ length: 6 }, (_, index) => `beside-${index}`);
      await Promise.all(
        names.map((name) => create(podManifest(name, { command: ['echo', 'started'] }))),
      );
      const hasEnded = async (name: string) => (await stateOf(name)).terminated !== undefined;
      for (const name of names) await until(() => hasEnded(name), `${name} has ended`);
      others.stdin.end();
      await once(others, 'exit');
      for (const name of names) expect(await logOf(name)).toBe('started\n');
      await rm(folder, { recursive: true });
    },
  );

  test('a pod that ignores SIGTERM is killed after its grace period', async () => {
    const command = [
      process.execPath,
      '-e',
      "process.on('SIGTERM', () => console.log('no')); console.log('up'); setInterval(() => {}, 1e6)",
    ];
    await create(podManifest('stubborn', { command }, { terminationGracePeriodSeconds: 1 }));
    await untilLogged('stubborn', 'up');
    const pid = (await cluster().pidOf(cluster().namespace, 'stubborn')) ?? 0;
    await remove('stubborn');
    await untilLogged('stubborn', 'no');
    expect(isAlive(pid)).toBe(true);
    await untilGone('stubborn');
    expect(isAlive(pid)).toBe(false);
  });

  test('a pod that fails says how, and is started again where its policy says so', async () => {
    await create(podManifest('fails', { command: ['sh', '-c', 'echo oh; exit 3'] }));
    await untilPhase('fails', 'Failed');
    expect((await stateOf('fails')).terminated).toMatchObject({ exitCode: 3, reason: 'Error' });

    await create(podManifest('missing', { command: ['no-such-program'] }));
    await untilPhase('missing', 'Failed');
    expect((await stateOf('missing')).terminated).toMatchObject({
      exitCode: 128,
      reason: 'StartError',
      message: expect.stringContaining(
        'exec: "no-such-program": executable file not found in $PATH',
      ),
    });

    const crashing = { restartPolicy: 'OnFailure' };
    await create(podManifest('crashes', { command: ['sh', '-c', 'exit 1'] }, crashing));
    await untilWaiting('crashes', 'CrashLoopBackOff');
    const { status } = await podOf('crashes');
    expect(status.containerStatuses[0]).toMatchObject({
      restartCount: expect.any(Number),
      lastState: { terminated: { exitCode: 1 } },
    });
    await remove('crashes');
    await untilGone('crashes');
  });

  test('images are pulled, or why not', async () => {
    await cluster().setImage('example.org/private:1', { failure: 'unauthorized' });
    const image = 'example.org/private:1';
    await create(podManifest('private', { command: ['true'], image }));
    await untilWaiting('private', 'ImagePullBackOff');
    expect(await eventsOf('private')).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^Failed: Failed to pull image .*pull access denied/),
        'BackOff: Back-off pulling image "example.org/private:1"',
        'Failed: Error: ImagePullBackOff',
      ]),
    );
    await cluster().setImage(image, { failure: null });
    await untilPhase('private', 'Succeeded');

    await cluster().setImage('example.org/root:1', { pullMs: 50, user: 'jovyan' });
    const asImageUser = {
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    };
    await create(
      podManifest('named-user', { command: ['true'], image: 'example.org/root:1' }, asImageUser),
    );
    await untilWaiting('named-user', 'CreateContainerConfigError');
    expect((await stateOf('named-user')).waiting.message).toMatch(
      /image has non-numeric user \(jovyan\), cannot verify user is non-root/,
    );
    await remove('named-user');
    await untilGone('named-user');
  });

  test('a missing secret holds a pod until it is there', async () => {
    const env = [{ name: 'KEY', valueFrom: { secretKeyRef: { name: 'later', key: 'key' } } }];
    await create(podManifest('waits', { command: ['sh', '-c', 'echo $KEY'], env }));
    await untilWaiting('waits', 'CreateContainerConfigError');
    expect((await stateOf('waits')).waiting.message).toBe('secret "later" not found');
    await create(
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'later' }, stringData: { key: 'k' } },
      'secrets',
    );
    await untilPhase('waits', 'Succeeded');
    expect(await logOf('waits')).toBe('k\n');
  });

  test('init containers run first, and volumes are theirs together', async () => {
    const volumeMounts = [{ name: 'shared', mountPath: '/work-of-both' }];
    const { securityContext } = (
      podManifest('x', { command: [] })['spec'] as { containers: [{ securityContext: object }] }
    ).containers[0];
    const init = {
      name: 'first',
      image: 'example.org/small:1',
      command: ['sh', '-c', 'echo from init > /work-of-both/file'],
      volumeMounts,
      securityContext,
    };
    const command = [
      'sh',
      '-c',
      'cat /work-of-both/file; touch /outside 2>/dev/null || echo read-only',
    ];
    await create(
      podManifest(
        'two-steps',
        { command, volumeMounts },
        { initContainers: [init], volumes: [{ name: 'shared', emptyDir: {} }] },
      ),
    );
    await untilPhase('two-steps', 'Succeeded');
    expect(await logOf('two-steps')).toBe('from init\nread-only\n');
    expect(existsSync('/work-of-both')).toBe(false);
  });

  test('a pod speaks with the API by its own service account', async () => {
    const program = `
      const { readFileSync } = require('node:fs');
      const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
      const folder = '/var/run/secrets/kubernetes.io/serviceaccount/';
      const [token, ca] = ['token', 'ca.crt'].map((name) => readFileSync(folder + name, 'utf8'));
      const headers = { authorization: 'Bearer ' + token };
      require('node:https').get({ host, port, ca, headers, path: '/api/v1/pods' }, (response) => {
        response.pipe(process.stdout);
      });`;
    await create(
      podManifest(
        'speaks',
        { command: [process.execPath, '-e', program] },
        { automountServiceAccountToken: true, serviceAccountName: 'hub' },
      ),
    );
    await untilPhase('speaks', 'Succeeded');
    expect(await logOf('speaks')).toMatch(/system:serviceaccount:hub-servers:hub.* cannot list/);
    expect(existsSync('/run/secrets/kubernetes.io')).toBe(false);
  });

  test('logs can be followed until the container ends', async () => {
    const command = ['sh', '-c', 'echo one; sleep 0.3; echo two'];
    await create(podManifest('follows', { command }));
    // It may have ended by the time somebody looks.
    const hasBegun = async () => {
      const { running, terminated } = await stateOf('follows');
      return (running ?? terminated) !== undefined;
    };
    await until(hasBegun, 'it has begun');
    expect(await logOf('follows', '?follow=true')).toBe('one\ntwo\n');
    expect(await logOf('follows', '?container=other')).toMatchObject({ code: 400 });
  });

  test('out of memory, evicted, too old: the pod says so', async () => {
    const command = ['sleep', '1000'];
    const { namespace } = cluster();
    for (const name of ['hungry', 'evicted']) await create(podManifest(name, { command }));
    await create(podManifest('old', { command }, { activeDeadlineSeconds: 1 }));
    for (const name of ['hungry', 'evicted']) await untilPhase(name, 'Running');
    await cluster().killForMemory(namespace, 'hungry');
    await untilPhase('hungry', 'Failed');
    expect((await stateOf('hungry')).terminated).toMatchObject({
      exitCode: 137,
      reason: 'OOMKilled',
    });
    await cluster().evictPod(namespace, 'evicted', 'The node was low on resource: memory.');
    expect((await podOf('evicted')).status).toMatchObject({
      phase: 'Failed',
      reason: 'Evicted',
      message: 'The node was low on resource: memory.',
    });
    await untilPhase('old', 'Failed');
    expect((await podOf('old')).status.reason).toBe('DeadlineExceeded');
    await until(async () => (await cluster().runningPods()) === 0, 'no process is left');
  });

  test('a pod with a finalizer ends, and stays', async () => {
    const held = podManifest(
      'held',
      { command: ['sleep', '1000'] },
      { terminationGracePeriodSeconds: 0 },
      { finalizers: ['example.org/hold'] },
    );
    await create(held);
    await untilPhase('held', 'Running');
    await remove('held');
    await until(async () => (await cluster().runningPods()) === 0, 'its process is gone');
    expect((await podOf('held')).metadata.deletionTimestamp).toBeDefined();
    await cluster().request(
      'PATCH',
      `${pods()}/held`,
      { metadata: { finalizers: null } },
      'application/merge-patch+json',
    );
    await untilGone('held');
  });

  test.for(['is stopped', 'is killed'])('all pods end with a cluster that %s', async (how) => {
    await using other = await startKubernetesApi();
    const path = `/api/v1/namespaces/${other.namespace}/pods`;
    await other.request('POST', path, podManifest('server', { command: ['sleep', '1000'] }));
    const stateNow = async () =>
      (await other.request('GET', `${path}/server`)).body.status.containerStatuses?.[0].state;
    await until(async () => (await stateNow())?.running !== undefined, 'it runs');
    const pid = (await other.pidOf(other.namespace, 'server')) ?? 0;
    expect(isAlive(pid)).toBe(true);
    if (how === 'is stopped') await other.stop();
    else process.kill(other.pid, 'SIGKILL');
    await until(() => !isAlive(pid), 'its process is gone');
  });

  test('an eviction by the API deletes a pod', async () => {
    await create(podManifest('moved', { command: ['sleep', '1000'] }));
    await untilPhase('moved', 'Running');
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'moved' } };
    const answer = await cluster().request('POST', `${pods()}/moved/eviction`, eviction);
    expect(answer.status).toBe(201);
    expect((await podOf('moved')).metadata.deletionTimestamp).toBeDefined();
    await remove('moved', '?gracePeriodSeconds=0');
  });
});
