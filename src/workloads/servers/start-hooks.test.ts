import { expect, test } from 'vitest';
import type { SpawnHook, StartChanges, StartSettings } from '../../plugin/host/spawn-hook.ts';
import { createStartHooks } from './start-hooks.ts';

const settings: StartSettings = {
  serverId: 'server-1',
  userName: 'ada',
  serverName: '',
  objectName: 'ada',
  groups: ['staff'],
  userOptions: {},
  authStates: {},
  command: ['app'],
  environment: { COURSE: 'one', TERM: 'dumb' },
  workingDirectory: '/homes/ada',
  limits: { memoryBytes: 1024, processes: 10 },
  guarantees: { cpuCores: 1 },
  volumes: [],
};
const never = new AbortController().signal;

function setUp(hooks: Readonly<Record<string, SpawnHook>>, timeoutMs = 60_000) {
  const warnings: object[] = [];
  return {
    warnings,
    ...createStartHooks({
      hooks: Object.entries(hooks).map(([name, hook]) => ({ name, hook })),
      timeoutMs,
      log: { warn: (fields: object) => void warnings.push(fields) },
    }),
  };
}

const changing = (changes: unknown): SpawnHook => ({
  beforeStart: async () => changes as StartChanges,
});

test('hooks change what they name, one after the other', async () => {
  const volume = { source: 'data', target: '/data', readOnly: true };
  const { beforeStart } = setUp({
    one: changing({
      command: ['nice', 'app'],
      environment: { COURSE: 'two', TERM: null },
      limits: { memoryBytes: 4096, processes: null },
      volumes: [volume],
    }),
    nothing: { beforeStart: async () => undefined },
    two: {
      beforeStart: async ({ command, environment, volumes }) => ({
        command: [...command, environment['COURSE'] ?? ''],
        workingDirectory: '/elsewhere',
        guarantees: { cpuCores: null },
        volumes: [...volumes, { ...volume, target: '/more' }],
      }),
    },
  });
  expect(await beforeStart(settings, never)).toEqual({
    ...settings,
    command: ['nice', 'app', 'two'],
    environment: { COURSE: 'two' },
    workingDirectory: '/elsewhere',
    limits: { memoryBytes: 4096 },
    guarantees: {},
    volumes: [volume, { ...volume, target: '/more' }],
  });
});

test.for<[unknown, string]>([
  [{ comand: [] }, 'comand is not a known setting; did you mean `command`?'],
  [{ command: [] }, 'command needs at least 1 entry'],
  [{ command: [''] }, 'command must begin with a program'],
  [{ command: ['a', 'b\0'] }, 'command[1] must hold no NUL character'],
  [{ environment: { 'A B': '' } }, 'environment["A B"] is not a name for an environment variable'],
  [{ environment: { A: 1 } }, 'environment.A must be text'],
  [{ workingDirectory: 'homes' }, 'workingDirectory must be an absolute path'],
  [{ limits: { memoryBytes: 0 } }, 'limits.memoryBytes must be more than 0'],
  [{ limits: { memory: 1 } }, 'limits.memory is not a known setting'],
  [{ guarantees: { gpus: 1 } }, 'guarantees.gpus is not a known setting'],
  [{ volumes: [{ source: 'x', target: 'data', readOnly: true }] }, 'volumes[0].target must be an'],
  [
    {
      volumes: [
        { source: 'x', target: '/data', readOnly: true },
        { source: 'y', target: '/data', readOnly: true },
      ],
    },
    'volumes must have a target of its own for each',
  ],
  ['text', 'must be an object'],
])('what cannot be fails the start and says why: %j', async ([changes, problem]) => {
  const { beforeStart } = setUp({ quota: changing(changes) });
  const failure = beforeStart(settings, never);
  await expect(failure).rejects.toThrow('The hook "quota" failed before the start: ');
  await expect(failure).rejects.toThrow(problem);
});

test('an error of a hook fails the start, and those after it do not run', async () => {
  const ran: string[] = [];
  const { beforeStart } = setUp({
    quota: { beforeStart: () => Promise.reject(new Error('your quota is used up')) },
    later: { beforeStart: async () => void ran.push('later') },
  });
  await expect(beforeStart(settings, never)).rejects.toThrow(
    'The hook "quota" failed before the start: your quota is used up',
  );
  expect(ran).toEqual([]);
});

test('a hook that hangs fails the start when its time is over, and is told', async () => {
  let reported: AbortSignal | undefined;
  const hangs: SpawnHook = {
    beforeStart: (_, { signal }) => {
      reported = signal;
      return new Promise(() => undefined);
    },
  };
  const { beforeStart } = setUp({ slow: hangs }, 20);
  await expect(beforeStart(settings, never)).rejects.toThrow(
    'The hook "slow" failed before the start: no answer within 0.02 seconds',
  );
  expect(reported?.aborted).toBe(true);
});

test('a start that is cancelled does not wait for a hook, and is no failure of it', async () => {
  const cancel = new AbortController();
  const { beforeStart } = setUp({ slow: { beforeStart: () => new Promise(() => undefined) } });
  const start = beforeStart(settings, cancel.signal);
  cancel.abort(new Error('cancelled by the user'));
  await expect(start).rejects.toThrow('cancelled by the user');
  await expect(beforeStart(settings, cancel.signal)).rejects.toThrow('cancelled by the user');
});

test('after a stop they run in the reverse order; one that fails or hangs keeps no other from it', async () => {
  const ran: string[] = [];
  const noting = (name: string): SpawnHook => ({
    afterStop: async ({ objectName }) => void ran.push(`${name} ${objectName}`),
  });
  const { afterStop, warnings } = setUp(
    {
      first: noting('first'),
      hangs: { afterStop: () => new Promise(() => undefined) },
      fails: { afterStop: () => Promise.reject(new Error('no')) },
      last: noting('last'),
    },
    20,
  );
  await afterStop(settings);
  expect(ran).toEqual(['last ada', 'first ada']);
  expect(warnings).toMatchObject([
    { hook: 'fails', user: 'ada', err: { message: 'no' } },
    { hook: 'hangs', user: 'ada', err: { message: 'no answer within 0.02 seconds' } },
  ]);
});
