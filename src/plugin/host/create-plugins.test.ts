import { expect, test } from 'vitest';
import { z } from 'zod';
import { createTestHost } from '../../../test/contract/testing.ts';
import type { Authenticator, FormAuthenticator } from './authenticator.ts';
import {
  type PreparedAuthenticator,
  startAuthenticator,
  startSpawner,
  tryAuthenticator,
  tryProvider,
} from './create-plugins.ts';
import { authenticatorProblem } from './plugin-shape.ts';

const form: FormAuthenticator = {
  login: {
    kind: 'form',
    label: 'Form',
    fields: [{ name: 'username', label: 'Name', type: 'text', autocomplete: 'username' }],
  },
  authenticate: async () => ({ outcome: 'refused', reason: 'credentials' }),
};

test('each kind of login wants its own methods, by its type and when it is created', () => {
  const incomplete: Authenticator[] = [
    // @ts-expect-error A login by form checks what was filled in.
    { login: form.login },
    // @ts-expect-error A login at a provider comes back.
    { login: { kind: 'external', label: 'There' }, beginLogin: () => Promise.reject(new Error()) },
    // @ts-expect-error A login by a header reads the request.
    { login: { kind: 'request', label: 'Proxy' } },
  ];
  expect(incomplete.map(authenticatorProblem)).toEqual([
    'creates no authenticator: authenticate: must be a function',
    'creates no authenticator: completeLogin: must be a function',
    'creates no authenticator: identify: must be a function',
  ]);
});

function prepare(create: () => Authenticator | Promise<Authenticator>): PreparedAuthenticator {
  return {
    entry: { class: 'x', name: 'x', options: {} },
    plugin: {
      kind: 'authenticator',
      name: 'x',
      section: 'XAuthenticator',
      optionsSchema: z.strictObject({}),
      create,
    },
    file: '/plugins/x.ts',
    options: {},
    surroundings: {
      name: 'x',
      publicUrl: 'http://127.0.0.1:8000/',
      isLoopbackOnly: true,
      trustedLocalAddress: undefined,
      asksForCertificates: false,
      hubTitle: 'Hub',
      directory: '/',
      callbackUrl: 'http://127.0.0.1:8000/hub/oauth_callback',
      shared: { enableAuthState: false, manageGroups: false },
    },
  };
}

/** Notes what is done with an authenticator. */
function noting(fields: Partial<FormAuthenticator> = {}) {
  const calls: string[] = [];
  const prepared = prepare(() => {
    calls.push('create');
    return {
      ...form,
      open: () => void calls.push('open'),
      [Symbol.asyncDispose]: async () => void calls.push('close'),
      ...fields,
    };
  });
  return { prepared, calls };
}

test('a trial opens nothing and closes what was created', async () => {
  const { prepared, calls } = noting();
  expect(await tryAuthenticator(prepared)).toBeUndefined();
  expect(calls).toEqual(['create', 'close']);
});

test('what is started is opened before it is handed out', async () => {
  const { prepared, calls } = noting();
  await startAuthenticator(prepared, await createTestHost());
  expect(calls).toEqual(['create', 'open']);
});

test('what does not open is closed, and says why', async () => {
  const { prepared, calls } = noting({ open: () => Promise.reject(new Error('no such reader')) });
  await expect(startAuthenticator(prepared, await createTestHost())).rejects.toThrow(
    '/plugins/x.ts fails in open: Error: no such reader',
  );
  expect(calls).toEqual(['create', 'close']);
});

test('a create or close that never ends is told, and waited for no longer', async () => {
  const never = () => new Promise<never>(() => {});
  expect(await tryAuthenticator(prepare(never), { timeoutMs: 10 })).toBe(
    '/plugins/x.ts fails in create: did not end within 0.01 seconds; what waits for others belongs in open',
  );
  const { prepared } = noting({ [Symbol.asyncDispose]: never });
  expect(await tryAuthenticator(prepared, { timeoutMs: 10 })).toMatch(
    /^\/plugins\/x\.ts fails in \[Symbol\.asyncDispose\]: did not end within 0\.01 seconds/,
  );
});

test('a trial fails where the plugin fails, with the whole reason in one line', async () => {
  const failing = prepare(() => {
    throw new TypeError('first line\nsecond line');
  });
  expect(await tryAuthenticator(failing)).toBe(
    '/plugins/x.ts fails in create: TypeError: first line',
  );
  const oddity = prepare(() => Promise.reject(Object.create(null)));
  expect(await tryAuthenticator(oddity)).toMatch(/^\/plugins\/x\.ts fails in create: /);
});

test('a provider that gives no answer is told by its reason, and a mistake of the plugin by its place', async () => {
  const reachable = (reach: () => Promise<void>) => tryProvider(noting({ reach }).prepared, 1_000);
  const refused = () => Promise.reject(new Error('refuses the connection\nat length'));
  expect(await reachable(refused)).toBe('refuses the connection');
  const wrong = () => Promise.reject(new TypeError('x is not a function'));
  expect(await reachable(wrong)).toBe(
    '/plugins/x.ts fails in reach: TypeError: x is not a function',
  );
});

test('what is created for use is looked at, too: it may be another than for trial', async () => {
  const { entry, surroundings, ...rest } = prepare(() => form);
  const spawner = {
    ...rest,
    surroundings,
    name: 'x',
    profileOptions: new Map(),
    plugin: { ...rest.plugin, kind: 'spawner' as const, create: () => ({}) as never },
  };
  const host = await createTestHost();
  await expect(
    startSpawner(spawner, {
      log: host.log,
      runtimeDirectory: '/',
      hubId: 'hub',
      activeServers: async () => new Set<string>(),
    }),
  ).rejects.toThrow(
    `/plugins/x.ts creates no spawner: start: must be a function; stop: must be a function; poll: must be a function; restore: must be a function`,
  );
  expect(entry.name).toBe('x');
});
