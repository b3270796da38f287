import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadCheckedConfig } from '../../src/entrances/cli/checked-config.ts';
import { formPluginSource } from '../support/form-plugin.ts';
import { programFile } from '../support/program-file.ts';
import { projectDirectory } from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

let directory: string;
let answerFile: string;
let countFile: string;

/** A plugin as an operator drops it into the folder: what its refresh says stands in a file. */
const pluginSource = () =>
  formPluginSource({
    name: 'refreshable',
    imports: `import { appendFile, readFile } from 'node:fs/promises';`,
    userFields: `groups: ['before'], authState: { upstream: 'state' }`,
    members: `refreshUser: async (user) => {
      await appendFile(${JSON.stringify(countFile)}, user.name + '\\n');
      const answer = JSON.parse(await readFile(${JSON.stringify(answerFile)}, 'utf8'));
      return answer.outcome === 'updated' ? { outcome: 'updated', user: { ...user, ...answer.user } } : answer;
    },`,
  });

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hub-refresh-'));
  answerFile = join(directory, 'answer.json');
  countFile = join(directory, 'refreshed');
  await mkdir(join(directory, 'plugins'));
  await writeFile(join(directory, 'plugins', 'refreshable.ts'), pluginSource());
});

afterAll(async () => rm(directory, { recursive: true }));

async function answerWith(answer: unknown): Promise<void> {
  await writeFile(answerFile, JSON.stringify(answer));
  await writeFile(countFile, '');
}

async function refreshes(): Promise<number> {
  return (await readFile(countFile, 'utf8')).split('\n').length - 1;
}

/** The plugin is named in `Hub.authenticator_class` and nowhere else. */
function startHub(authenticator: Readonly<Record<string, unknown>> = {}): Promise<TestHub> {
  return createTestHub({
    DummyAuthenticator: undefined,
    Hub: {
      cleanup_servers: true,
      plugins_dir: join(directory, 'plugins'),
      authenticator_class: 'refreshable',
      load_roles: [{ name: 'user', scopes: ['self', 'read:users:groups!user'] }],
    },
    Authenticator: { manage_groups: true, ...authenticator },
    Spawner: {
      cmd: [
        process.execPath,
        programFile('singleuser-main'),
        '--',
        process.execPath,
        join(projectDirectory, 'fixtures/apps/prints-environment.cjs'),
      ],
    },
  });
}

describe('Authenticator settings', () => {
  test('auth_refresh_age is 300 seconds and refresh_pre_spawn false by default', async () => {
    const file = join(directory, 'plain.json');
    await writeFile(file, JSON.stringify({ Hub: { authenticator_class: 'dummy' } }));
    const { config } = await loadCheckedConfig({ file, env: {} });
    expect(config.Authenticator).toMatchObject({ auth_refresh_age: 300, refresh_pre_spawn: false });
  });

  test('refresh_user() is not called before auth_refresh_age has passed', async () => {
    await answerWith({ outcome: 'unchanged' });
    await using hub = await startHub();
    const browser = await hub.logIn('early', 'x');
    expect((await browser.request(`${hub.url}hub/home`)).status).toBe(200);
    expect(await refreshes()).toBe(0);
  });

  test('refresh_user() may return an updated user model', async () => {
    await answerWith({ outcome: 'updated', user: { groups: ['after'] } });
    await using hub = await startHub({ auth_refresh_age: 1 });
    const browser = await hub.logIn('changed', 'x');
    await until(async () => {
      await browser.request(`${hub.url}hub/home`);
      const answer = await hub.api('/users/changed', 'admin-service-token');
      return JSON.stringify(((await answer.json()) as { groups: string[] }).groups) === '["after"]';
    }, 'the groups are those of the provider');
    expect((await browser.request(`${hub.url}hub/home`)).status).toBe(200);
  });

  test('refresh_user() may force a full login again', async () => {
    await answerWith({ outcome: 'login_required' });
    await using hub = await startHub({ auth_refresh_age: 1 });
    const browser = await hub.logIn('ended', 'x');
    await until(async () => {
      const answer = await browser.request(`${hub.url}hub/home`);
      return answer.status === 302 && answer.headers.location?.includes('/hub/login') === true;
    }, 'the login has ended');
  });

  test('refresh_pre_spawn calls refresh_user() before a server is spawned, whatever the age', async () => {
    await answerWith({ outcome: 'unchanged' });
    await using hub = await startHub({ refresh_pre_spawn: true });
    await hub.logIn('spawns', 'x');
    expect(await refreshes()).toBe(0);
    const answer = await hub.api('/users/spawns/server', 'admin-service-token', { method: 'POST' });
    expect([201, 202]).toContain(answer.status);
    await until(async () => (await refreshes()) === 1, 'the user was refreshed');
  });
});
