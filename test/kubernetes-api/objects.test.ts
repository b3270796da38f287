import { describe, expect, test } from 'vitest';
import {
  canServeKubernetes,
  type KubernetesAnswer,
  useKubernetesApi,
} from '../support/kubernetes-api.ts';
import { podManifest } from '../support/kubernetes-pods.ts';

describe.skipIf(!canServeKubernetes())('objects of the small Kubernetes', () => {
  const cluster = useKubernetesApi();
  const path = (plural: string) => `/api/v1/namespaces/${cluster().namespace}/${plural}`;
  const send = (method: string, url: string, body?: unknown, type?: string) =>
    cluster().request(method, url, body, type);
  const configMap = (name: string, data: Record<string, string> = {}, labels = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, labels },
    data,
  });
  const messageOf = ({ status, body }: KubernetesAnswer) => `${status} ${body.message}`;

  test('are stored with what the server adds, and removed', async () => {
    const created = await send('POST', path('configmaps'), configMap('first', { a: '1' }));
    expect(created.status).toBe(201);
    const { uid, resourceVersion, creationTimestamp, namespace } = created.body.metadata;
    expect(uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(Number(resourceVersion)).toBeGreaterThan(0);
    expect(creationTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(namespace).toBe(cluster().namespace);
    expect((await send('GET', `${path('configmaps')}/first`)).body).toEqual(created.body);

    expect(await send('POST', path('configmaps'), configMap('first'))).toMatchObject({
      status: 409,
      body: {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: 'configmaps "first" already exists',
        reason: 'AlreadyExists',
        details: { name: 'first', kind: 'configmaps' },
        code: 409,
      },
    });
    expect((await send('DELETE', `${path('configmaps')}/first`)).body).toMatchObject({
      status: 'Success',
      details: { name: 'first', kind: 'configmaps', uid },
    });
    expect((await send('GET', `${path('configmaps')}/first`)).body).toMatchObject({
      reason: 'NotFound',
      message: 'configmaps "first" not found',
      code: 404,
    });
  });

  test('get a name from generateName', async () => {
    const metadata = { generateName: 'some-' };
    const { body } = await send('POST', path('configmaps'), {
      ...configMap(''),
      metadata,
    });
    expect(body.metadata.name).toMatch(/^some-[a-z0-9]{5}$/);
  });

  test('are replaced only where they are still what the client saw', async () => {
    const { body } = await send('POST', path('configmaps'), configMap('raced', { a: '1' }));
    const url = `${path('configmaps')}/raced`;
    expect((await send('PUT', url, { ...body, data: { a: '2' } })).status).toBe(200);
    const late = await send('PUT', url, { ...body, data: { a: '3' } });
    expect(late.body).toMatchObject({
      reason: 'Conflict',
      code: 409,
      message:
        'Operation cannot be fulfilled on configmaps "raced": the object has been modified; please apply your changes to the latest version and try again',
    });
    const wrong = { preconditions: { uid: 'other' } };
    expect((await send('DELETE', url, wrong)).body).toMatchObject({ reason: 'Conflict' });
  });

  test('are patched in three ways', async () => {
    await send('POST', path('configmaps'), configMap('patched', { a: '1', b: '2' }));
    const url = `${path('configmaps')}/patched`;
    const merged = await send(
      'PATCH',
      url,
      { data: { a: null, c: '3' } },
      'application/merge-patch+json',
    );
    expect(merged.body.data).toEqual({ b: '2', c: '3' });
    const steps = [
      { op: 'test', path: '/data/b', value: '2' },
      { op: 'add', path: '/metadata/labels', value: { 'x/y': '1' } },
      { op: 'remove', path: '/data/b' },
    ];
    const stepped = await send('PATCH', url, steps, 'application/json-patch+json');
    expect(stepped.body).toMatchObject({
      data: { c: '3' },
      metadata: { labels: { 'x/y': '1' } },
    });
    expect(await send('PATCH', url, steps, 'application/json-patch+json')).toMatchObject({
      status: 422,
    });
    await send('POST', path('serviceaccounts'), {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'patched' },
      imagePullSecrets: [{ name: 'one' }],
    });
    const strategic = await send(
      'PATCH',
      `${path('serviceaccounts')}/patched`,
      { imagePullSecrets: [{ name: 'two' }] },
      'application/strategic-merge-patch+json',
    );
    expect(strategic.body.imagePullSecrets).toEqual([{ name: 'one' }, { name: 'two' }]);
    expect(await send('PATCH', url, {}, 'application/x-yaml')).toMatchObject({ status: 415 });
  });

  test('are listed by selectors and in pages of one moment', async () => {
    for (const [name, team] of [
      ['a', 'red'],
      ['b', 'red'],
      ['c', 'blue'],
    ] as const)
      await send('POST', path('secrets'), {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: `list-${name}`, labels: { team } },
      });
    const names = async (query: string) => {
      const { body } = await send('GET', `${path('secrets')}?${query}`);
      return body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
    };
    expect(await names('labelSelector=team%3Dred')).toEqual(['list-a', 'list-b']);
    expect(await names('labelSelector=team%20in%20(blue,green)')).toEqual(['list-c']);
    expect(await names('labelSelector=team,team!%3Dred')).toEqual(['list-c']);
    expect(await names('fieldSelector=metadata.name%3Dlist-b')).toEqual(['list-b']);
    expect((await send('GET', `${path('secrets')}?fieldSelector=data.a%3D1`)).status).toBe(400);

    const first = (await send('GET', `${path('secrets')}?limit=2&labelSelector=team`)).body;
    expect(first.items).toHaveLength(2);
    expect(first.metadata.remainingItemCount).toBe(1);
    await send('DELETE', `${path('secrets')}/list-c`);
    const token = encodeURIComponent(first.metadata.continue);
    const next = `${path('secrets')}?limit=2&labelSelector=team&continue=${token}`;
    expect((await send('GET', next)).body.items[0].metadata.name).toBe('list-c');
    await cluster().compact();
    expect((await send('GET', next)).body).toMatchObject({ code: 410, reason: 'Expired' });
  });

  test('are checked against the schemas of Kubernetes, unknown fields too', async () => {
    const unknown = podManifest('unknown', { command: ['true'], comand: ['true'] });
    expect(messageOf(await send('POST', path('pods'), unknown))).toBe(
      '400 Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].comand"',
    );
    const mistyped = podManifest('mistyped', { command: 'true' as never });
    expect(messageOf(await send('POST', path('pods'), mistyped))).toMatch(
      /^400 Pod in version "v1" cannot be handled as a Pod: .*spec\.containers\[0\]\.command must be array/,
    );
    const nameless = podManifest('nameless', { command: ['true'], name: undefined });
    expect((await send('POST', path('pods'), nameless)).body).toMatchObject({
      code: 422,
      reason: 'Invalid',
      message: 'Pod "nameless" is invalid: spec.containers[0].name: Required value',
      details: {
        name: 'nameless',
        kind: 'Pod',
        causes: [
          {
            reason: 'FieldValueRequired',
            message: 'Required value',
            field: 'spec.containers[0].name',
          },
        ],
      },
    });
    const policy = podManifest('policy', { command: ['true'] }, { restartPolicy: 'Sometimes' });
    expect(messageOf(await send('POST', path('pods'), policy))).toBe(
      '422 Pod "policy" is invalid: spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
    );
    const mounts = [{ name: 'home', mountPath: '/home' }];
    const dangling = podManifest('dangling', { command: ['true'], volumeMounts: mounts });
    expect(messageOf(await send('POST', path('pods'), dangling))).toBe(
      '422 Pod "dangling" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "home"',
    );
    const resources = { limits: { memory: '1Gi' }, requests: { memory: '2Gi' } };
    const greedy = podManifest('greedy', { command: ['true'], resources });
    expect(messageOf(await send('POST', path('pods'), greedy))).toMatch(
      /^422 .*must be less than or equal to memory limit of 1Gi/,
    );
    for (const [name, labels] of [
      ['Upper', {}],
      ['label', { team: 'not a label' }],
      ['key', { 'a/b/c': 'x' }],
    ] as const)
      expect((await send('POST', path('configmaps'), configMap(name, {}, labels))).status).toBe(
        422,
      );
    const other = { ...configMap('other'), kind: 'Secret' };
    expect((await send('POST', path('configmaps'), other)).status).toBe(400);
  });

  test('keep what may not change, and their status apart', async () => {
    const pod = podManifest('fixed', { command: ['true'] }, { nodeSelector: { no: 'such' } });
    const { body } = await send('POST', path('pods'), { ...pod, status: { phase: 'Running' } });
    expect(body).toMatchObject({
      status: { phase: 'Pending', qosClass: 'BestEffort' },
      metadata: { generation: 1 },
      spec: { dnsPolicy: 'ClusterFirst', serviceAccountName: 'default' },
    });
    const url = `${path('pods')}/fixed`;
    const patch = (change: object) => send('PATCH', url, change, 'application/merge-patch+json');
    expect((await patch({ spec: { restartPolicy: 'Always' } })).body).toMatchObject({
      code: 422,
      details: { causes: [{ field: 'spec', reason: 'FieldValueForbidden' }] },
    });
    expect((await patch({ status: { phase: 'Failed' } })).body.status.phase).toBe('Pending');
    const status = await send(
      'PATCH',
      `${url}/status`,
      { status: { message: 'seen' } },
      'application/merge-patch+json',
    );
    expect(status.body.status).toMatchObject({ phase: 'Pending', message: 'seen' });
  });

  test('with a finalizer stay until it is taken away', async () => {
    const held = { ...configMap('held'), metadata: { name: 'held', finalizers: ['x.org/hold'] } };
    await send('POST', path('configmaps'), held);
    const url = `${path('configmaps')}/held`;
    await send('DELETE', url);
    expect((await send('GET', url)).body.metadata.deletionTimestamp).toBeDefined();
    const freed = { metadata: { finalizers: null } };
    expect((await send('PATCH', url, freed, 'application/merge-patch+json')).status).toBe(200);
    expect((await send('GET', url)).status).toBe(404);
  });

  test('go with their owner, and with their namespace', async () => {
    const owner = (await send('POST', path('configmaps'), configMap('owner'))).body;
    const ownerReferences = [
      { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid },
    ];
    await send('POST', path('secrets'), {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'owned', ownerReferences },
    });
    await send('DELETE', `${path('configmaps')}/owner`);
    await expect.poll(async () => (await send('GET', `${path('secrets')}/owned`)).status).toBe(404);

    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'short' } };
    await send('POST', '/api/v1/namespaces', namespace);
    await send('POST', '/api/v1/namespaces/short/configmaps', configMap('inside'));
    await send('DELETE', '/api/v1/namespaces/short');
    await expect.poll(async () => (await send('GET', '/api/v1/namespaces/short')).status).toBe(404);
    expect((await send('GET', '/api/v1/namespaces/short/configmaps/inside')).status).toBe(404);
    expect(
      messageOf(await send('POST', '/api/v1/namespaces/short/configmaps', configMap('late'))),
    ).toBe('404 namespaces "short" not found');
  });

  test('answers errors, slowness and lost answers when it is told to', async () => {
    const url = `${path('configmaps')}/faulty`;
    await cluster().addFault({ status: 429, retryAfterSeconds: 7, path: '/faulty$', times: 1 });
    const busy = await send('GET', url);
    expect([busy.status, busy.headers['retry-after'], busy.body.reason]).toEqual([
      429,
      '7',
      'TooManyRequests',
    ]);
    expect((await send('GET', url)).status).toBe(404);
    await cluster().addFault({ dropsAnswer: true, method: 'POST', times: 1 });
    await expect(send('POST', path('configmaps'), configMap('faulty'))).rejects.toThrow(/hang up/);
    expect((await send('GET', url)).status).toBe(200);
    await cluster().stopApi();
    await expect(send('GET', url)).rejects.toThrow(/ECONNREFUSED/);
    await cluster().startApi();
    expect((await send('GET', url)).status).toBe(200);
  });
});
