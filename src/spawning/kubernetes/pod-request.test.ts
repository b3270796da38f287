import { describe, expect, test } from 'vitest';
import { createSpawnRequest } from '../../../test/contract/spawn-request.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import { claimNameOf } from './claims.ts';
import { secretNameOf } from './hub-objects.ts';
import { findOptionProblems, optionsSchema, profileOptionsSchema } from './kubernetes-options.ts';
import { podRequest } from './pod-request.ts';

const hubId = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff';

function build(options: object = {}, changed: Partial<SpawnRequest> = {}, profile: object = {}) {
  const request = createSpawnRequest({ command: ['lab'], ...changed });
  return podRequest({
    request: { ...request, profileOptions: profileOptionsSchema.parse(profile) },
    options: optionsSchema.parse({ image: 'lab:1', ...options }),
    hubId,
    namespace: 'servers',
    image: 'lab:1',
  });
}

const serverOf = ({ pod }: ReturnType<typeof build>) => pod.spec?.containers[0];

describe('the pod of a server', () => {
  test('keeps the restricted security standard and has no token of a service account', () => {
    const built = build();
    expect(built.pod.spec).toMatchObject({
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(serverOf(built)?.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      privileged: false,
      capabilities: { drop: ['ALL'] },
    });
  });

  test('has its environment in a Secret, and none of the machine of the hub', () => {
    const environment = { HUB_API_TOKEN: 'hub_secret', PASSWORD: 'p', PATH: '/of/the/hub' };
    const built = build({}, { environment });
    expect(JSON.stringify(built.pod)).not.toContain('hub_secret');
    const { data, metadata } = built.secret;
    const values = Object.entries(data ?? {}).map(([name, value]) => [name, atob(value)]);
    expect(Object.fromEntries(values)).toEqual({ HUB_API_TOKEN: 'hub_secret', PASSWORD: 'p' });
    expect(serverOf(built)?.envFrom).toEqual([{ secretRef: { name: metadata?.name } }]);
    expect(serverOf(built)?.env).toEqual([
      { name: 'HUB_SERVICE_URL', value: 'http://0.0.0.0:8888' },
    ]);
    expect(() => build({}, { environment: { 'a b': '1' } })).toThrow('variable named "a b"');
  });

  test('listens where it is told, also at the address of its pod', () => {
    const address = (options: object) => serverOf(build(options))?.env?.at(-1)?.value;
    expect(address({ listen_ip: '::', port: 9000 })).toBe('http://[::]:9000');
    const own = build(
      { listen_ip: '{pod_ip}' },
      { command: ['lab', '--ip={ip}', '--port={port}'] },
    );
    expect(serverOf(own)?.args).toEqual(['lab', '--ip=$(HUB_POD_IP)', '--port=8888']);
    expect(serverOf(own)?.env).toEqual([
      { name: 'HUB_POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
      { name: 'HUB_SERVICE_URL', value: 'http://$(HUB_POD_IP):8888' },
    ]);
  });

  test('has a command in which Kubernetes replaces nothing', () => {
    const built = build(
      { entrypoint: ['tini', '--'] },
      { command: ['sh', '-c', 'echo $$ $(HOME)'] },
    );
    expect(serverOf(built)).toMatchObject({
      command: ['tini', '--'],
      args: ['sh', '-c', 'echo $$$$ $$(HOME)'],
    });
  });

  test('says whose it is, in labels that hold any name', () => {
    const { pod, secret } = build({ labels: { team: 'physics' } }, { userName: 'Ann@example.org' });
    expect(pod.metadata).toMatchObject({
      name: 'hub-6f9619ff-ann',
      namespace: 'servers',
      labels: {
        team: 'physics',
        'app.kubernetes.io/managed-by': 'hub',
        'hub/instance': hubId,
        'hub/server-id': 'server-1',
      },
      annotations: { 'hub/user-name': 'Ann@example.org', 'hub/server-name': '' },
    });
    expect(pod.metadata?.labels?.['hub/user']).toMatch(/^u-ann-example-org--\w+$/);
    expect(secret.metadata?.labels).toEqual(pod.metadata?.labels);
  });

  test('is held to limits and guarantees, also of GPUs', () => {
    const built = build(
      { gpu_resource: 'amd.com/gpu' },
      {
        limits: { memoryBytes: 1024 ** 3, cpuCores: 1.5, gpus: 2 },
        guarantees: { memoryBytes: 1000, cpuCores: 0.25 },
      },
    );
    expect(serverOf(built)?.resources).toEqual({
      limits: { memory: '1073741824', cpu: '1500m', 'amd.com/gpu': '2' },
      requests: { memory: '1000', cpu: '250m', 'amd.com/gpu': '2' },
    });
  });

  test('takes what the profile says in place of the configuration', () => {
    const { pod } = build(
      { node_selector: { disk: 'ssd' }, service_account: 'lab', run_as_user: 1000, fs_group: 100 },
      {},
      {
        node_selector: { gpu: 'yes' },
        tolerations: [{ key: 'gpu', operator: 'Exists', toleration_seconds: 60 }],
        pull_policy: 'Always',
        pull_secrets: ['registry'],
        priority_class: 'high',
      },
    );
    expect(pod.spec).toMatchObject({
      nodeSelector: { gpu: 'yes' },
      serviceAccountName: 'lab',
      priorityClassName: 'high',
      tolerations: [{ key: 'gpu', operator: 'Exists', tolerationSeconds: 60 }],
      imagePullSecrets: [{ name: 'registry' }],
      securityContext: { runAsUser: 1000, fsGroup: 100 },
      containers: [{ imagePullPolicy: 'Always' }],
    });
  });

  test('mounts claims of its own and claims that are there, each once', () => {
    const { pod } = build(
      {
        read_only: true,
        claims: [
          { name: 'home-{username}', mount_path: '/home/user' },
          { name: 'scratch-{server}', mount_path: '/scratch', sub_path: 'data' },
        ],
      },
      {
        userName: 'ann',
        serverName: 'lab',
        volumes: [
          { source: 'shared', target: '/shared', readOnly: true },
          { source: 'shared', subPath: 'home/ann', target: '/again', readOnly: false },
        ],
      },
    );
    expect(pod.spec?.volumes?.map(({ persistentVolumeClaim: claim }) => claim?.claimName)).toEqual([
      'home-ann',
      'scratch-ann---lab',
      'shared',
      undefined,
    ]);
    expect(pod.spec?.containers[0]?.volumeMounts).toEqual([
      { name: 'claim-0', mountPath: '/home/user' },
      { name: 'claim-1', mountPath: '/scratch', subPath: 'data' },
      { name: 'claim-2', mountPath: '/shared', readOnly: true },
      { name: 'claim-2', mountPath: '/again', readOnly: false, subPath: 'home/ann' },
      { name: 'tmp', mountPath: '/tmp' },
    ]);
  });

  test.for([
    [{ source: '/etc', target: '/data' }, 'folders of nodes are not mounted'],
    [{ source: 'Shared_1', target: '/data' }, 'this cannot be the name of a claim'],
    [{ source: 'shared', target: '/a/../..' }, 'its target must be an absolute path below /'],
  ] as const)('does not mount %o', ([volume, problem]) => {
    expect(() => build({}, { volumes: [{ ...volume, readOnly: false }] })).toThrow(problem);
  });

  test('is patched by the configuration, then by the profile', () => {
    const { pod } = build(
      { pod_patch: { spec: { dnsPolicy: 'None', hostAliases: [{ ip: '10.0.0.1' }] } } },
      {},
      { pod_patch: { spec: { dnsPolicy: null, priority: 7 } } },
    );
    expect(pod.spec).toMatchObject({ priority: 7, hostAliases: [{ ip: '10.0.0.1' }] });
    expect(pod.spec).not.toHaveProperty('dnsPolicy');
  });

  test('does not lose its container to a patch', () => {
    const pod_patch = { spec: { containers: [{ name: 'sidecar', image: 'other:1' }] } };
    expect(build({ pod_patch }).pod.spec?.containers).toHaveLength(2);
    expect(() => build({ pod_patch, pod_patch_type: 'merge' })).toThrow(
      'The patch of the pod removes the container of the server.',
    );
  });
});

describe('names', () => {
  const owner = (userName: string) => ({ userName, serverName: '' });

  test('of claims differ where names of users do, however they are escaped', () => {
    const claim = { name: 'home-{username}' };
    const names = [
      'ann',
      'Ann',
      'a.nn',
      'a-nn',
      'a_nn',
      'ann@example.org',
      'ann-example-org',
      'Änn',
    ];
    const claimNames = names.map((name) => claimNameOf(claim, owner(name)));
    expect(new Set(claimNames).size).toBe(names.length);
    for (const name of claimNames) expect(name).toMatch(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/);
  });

  test('of Secrets go by hub and server', () => {
    const name = secretNameOf('hub', hubId, 'server-1');
    expect(name).toMatch(/^hub-environment-[0-9a-f]{32}$/);
    expect(secretNameOf('hub', hubId, 'server-2')).not.toBe(name);
    expect(secretNameOf('hub', 'another', 'server-1')).not.toBe(name);
  });
});

describe('options', () => {
  test.for([
    [{ namespace: 'No_Name' }, /DNS label/],
    [{ claims: [{ name: 'shared', mount_path: '/x' }] }, /around \{username\} or \{server\}/],
    [{ claims: [{ name: 'home-{username}', mount_path: 'x' }] }, /absolute path/],
    [{ claims: [{ name: 'home-{username}', mount_path: '/x', size: 'much' }] }, /such as 10Gi/],
    [{ labels: { 'hub/server-id': 'x' } }, /is set by the hub/],
    [{ labels: { team: 'not a value' } }, /not the value of a label/],
    [{ pod_patch: { spec: { restartPolicy: 'Always' } } }, /is set by the hub/],
    [{ allowed_images: ['not an image'] }, /not a reference of an image/],
    [{ run_as_user: 0 }, />=1/],
    [{ no_such_option: 1 }, /no_such_option/],
  ] as const)('%o are refused', ([options, message]) => {
    const result = optionsSchema.safeParse(options);
    expect(result.error?.message).toMatch(message);
  });

  test('of two claims at one place are a problem', () => {
    const claims = ['a-{username}', 'b-{username}'].map((name) => ({ name, mount_path: '/home' }));
    expect(findOptionProblems(optionsSchema.parse({ claims }))).toEqual([
      { option: 'claims[1].mount_path', message: 'stands in another claim too' },
    ]);
  });
});
