import { describe, expect, test } from 'vitest';
import { createRequest } from '../../src/spawning/docker/create-request.ts';
import { dockerPlugin } from '../../src/spawning/docker/docker-plugin.ts';
import { chooseImage } from '../../src/spawning/images/choose-image.ts';
import {
  optionsSchema,
  profileOptionsSchema,
} from '../../src/spawning/kubernetes/kubernetes-options.ts';
import { podRequest } from '../../src/spawning/kubernetes/pod-request.ts';
import { jobArguments } from '../../src/spawning/slurm/job-arguments.ts';
import { chooseFor, optionsSchema as slurmSchema } from '../../src/spawning/slurm/slurm-options.ts';
import { createSpawnRequest } from '../contract/spawn-request.ts';

const hubId = '6f9619ff-8b86-4d01-b42d-00cf4fc964ff';
const hostPath = { volumes: [{ name: 'host', hostPath: { path: '/' } }] };

/** What a user may send as options: every word of the operator's, and of the engines' own requests. */
const hostile: readonly Readonly<Record<string, unknown>>[] = [
  { pod_patch: { spec: { hostNetwork: true, ...hostPath } }, spec: hostPath },
  { create_options: { HostConfig: { Privileged: true, Binds: ['/:/host'] } }, Privileged: true },
  { profileOptions: { run_as_user: 0, service_account: 'hub' }, run_as_user: 0, user: 'root' },
  { labels: { 'hub/server-id': 'another' }, annotations: { 'hub/user-name': 'root' } },
  { extra_arguments: ['--uid=0'], prologue: 'id', account: 'root', qos: 'x', gres: 'gpu:9' },
  JSON.parse('{"__proto__": {"pod_patch": {"spec": {"hostPID": true}}, "privileged": true}}'),
  JSON.parse('{"constructor": {"prototype": {"hostPID": true}}, "toString": "x"}'),
];

function specifications(userOptions: Readonly<Record<string, unknown>>, names: object = {}) {
  const request = { ...createSpawnRequest({ userOptions, ...names }), profileOptions: {} };
  const options = optionsSchema.parse({
    image: 'lab:1',
    claims: [{ name: 'home-{server}', mount_path: '/home/user', sub_path: 'data' }],
  });
  const pod = podRequest({
    request: { ...request, profileOptions: profileOptionsSchema.parse({}) },
    options,
    hubId,
    namespace: 'servers',
    image: chooseImage(request, options, 'KubernetesSpawner'),
  });
  const container = createRequest({
    request,
    options: dockerPlugin.optionsSchema.parse({ image: 'lab:1' }) as never,
    hubId,
    name: 'hub-ann',
    image: 'lab:1',
    network: 'hub',
    listen: { ip: '0.0.0.0', port: 8888, isPublished: true },
  });
  const job = jobArguments(request, chooseFor(slurmSchema.parse({}), request), {
    name: 'hub-ann',
    comment: '',
    outputFile: '/tmp/output',
  });
  return { pod, container, job };
}

/** Every member of an object by its path, without the values. */
function pathsOf(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return [path];
  return Object.entries(value).flatMap(([name, member]) => pathsOf(member, `${path}/${name}`));
}

describe('what the engine is asked for', () => {
  test.for(hostile)('is not changed by options that the operator does not offer: %j', (options) => {
    expect(specifications(options)).toEqual(specifications({}));
  });

  test.for(['lab:1@evil', '__proto__', 'constructor', ['lab:2'], { toString: 'lab:1' }, 0])(
    'is no image but those on offer: %j',
    (image) => {
      expect(() => specifications({ image })).toThrow('not one of those that may be chosen');
    },
  );

  test.for([
    '../../root',
    '$(HUB_API_TOKEN)',
    'a: b\n- c',
    '{server}',
    '{port}',
    '"; id',
    '__proto__',
  ])('keeps its form whatever a user and a server are called: %j', (name) => {
    const usual = specifications({}, { serverName: 'lab' });
    const named = specifications({}, { userName: name, accountName: name, serverName: 'lab' });
    expect(pathsOf(named)).toEqual(pathsOf(usual));
    const { metadata, spec } = named.pod.pod;
    for (const label of Object.values(metadata?.labels ?? {}))
      expect(label).toMatch(/^[A-Za-z0-9][\w.-]{0,62}$/);
    expect(spec?.volumes?.map(({ persistentVolumeClaim: claim }) => claim?.claimName)).toEqual([
      expect.stringMatching(/^[a-z0-9-]+$/),
    ]);
    // It is data of the annotations that say whose it is, and nowhere else.
    expect(JSON.stringify(spec)).not.toContain(JSON.stringify(name).slice(1, -1));
  });
});
