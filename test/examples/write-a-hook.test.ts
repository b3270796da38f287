import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { HubProcess } from '../support/hub-process.ts';
import {
  createPluginFolder,
  type PluginFolder,
  type PluginFolderConfig,
} from '../support/plugin-folder.ts';
import { compileIn } from '../support/plugin-types.ts';
import type { ServerModel } from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

let folder: PluginFolder;
/** As the page shows it. */
let shown: PluginFolderConfig & { readonly Spawner: object };

/** The code of the page as it stands there, in an empty folder outside the project. */
beforeAll(async () => {
  folder = await createPluginFolder();
  await folder.writeBlocks('write-a-hook.md', ['plugins/scratch.ts', 'hub.config.json']);
  shown = JSON.parse(await readFile(folder.path('hub.config.json'), 'utf8'));
});

afterAll(async () => {
  await folder?.[Symbol.asyncDispose]();
});

function runnable() {
  return {
    ...shown,
    // A server that says what it was started with, and then answers.
    Spawner: {
      ...shown.Spawner,
      cmd: [process.execPath, folder.path('server.mjs')],
      access: 'gateway',
      start_timeout: 300,
      http_timeout: 300,
    },
  };
}

const server = `import { createServer } from 'node:http';
import { existsSync, writeFileSync } from 'node:fs';
const { HUB_SERVICE_URL, HUB_USER, SCRATCH, MEM_LIMIT } = process.env;
writeFileSync('seen.json', JSON.stringify({ SCRATCH, MEM_LIMIT, isThere: existsSync(SCRATCH) }));
createServer((request, response) => response.end('served')).listen(new URL(HUB_SERVICE_URL).port);
`;

async function serverOf(user: string): Promise<ServerModel | undefined> {
  const model = (await (await folder.api(`/users/${user}?include_stopped_servers`)).json()) as {
    servers?: Record<string, ServerModel>;
  };
  return model.servers?.[''];
}

async function start(user: string): Promise<void> {
  await folder.api(`/users/${user}`, { method: 'POST' });
  const { status } = await folder.api(`/users/${user}/server`, { method: 'POST' });
  expect([201, 202]).toContain(status);
  await until(async () => (await serverOf(user))?.ready === true, `the server of ${user} is ready`);
}

const seen = async (user: string) =>
  JSON.parse(await readFile(folder.path(`homes/${user}/seen.json`), 'utf8'));

test('the example passes hub check as it stands, and has no mistake of types', async () => {
  expect(await folder.hub('check')).toMatchObject({ code: 0, stderr: '' });
  await compileIn(folder, ['plugins/scratch.ts']);
});

test('a misspelt name, option or result of a hook is told by hub check', async () => {
  const wrong = async (changed: object) => {
    await folder.configure({ ...shown, ...changed });
    const { problems } = await folder.hub('check');
    await folder.configure(shown);
    return problems;
  };
  expect(await wrong({ Spawner: { ...shown.Spawner, hooks: ['scrach'] } })).toEqual([
    'Spawner.hooks[0]: there is no spawn-hook plugin called "scrach"; did you mean `scratch`?',
  ]);
  expect(await wrong({ ScratchHook: { large_memory: '2G' } })).toEqual([
    'ScratchHook.large_memory: must be a number',
  ]);
});

test('the example gives servers their scratch folders, and takes them away whatever ends the server', async () => {
  await folder.write('server.mjs', server);
  const config = runnable();
  const scratch = folder.path('scratch/ada');
  let hub: HubProcess | undefined;
  try {
    hub = await folder.start(config);
    await start('ada');
    expect(await seen('ada')).toEqual({
      SCRATCH: scratch,
      MEM_LIMIT: String(2 ** 31),
      isThere: true,
    });
    await start('cat');
    expect(await seen('cat')).toMatchObject({ MEM_LIMIT: String(512 * 1024 ** 2) });

    expect([202, 204]).toContain(
      (await folder.api('/users/ada/server', { method: 'DELETE' })).status,
    );
    await until(() => !existsSync(scratch), 'the folder of a stopped server is gone');

    await start('ada');
    process.kill(Number((await serverOf('ada'))?.state?.['pid']), 'SIGKILL');
    await until(() => !existsSync(scratch), 'the folder of a crashed server is gone');

    await start('ada');
    const pid = Number((await serverOf('ada'))?.state?.['pid']);
    hub.signal('SIGKILL');
    await hub.exited;
    process.kill(pid, 'SIGKILL');
    expect(existsSync(scratch)).toBe(true);
    hub = await folder.start({ ...config, Hub: { ...config.Hub, cleanup_servers: true } });
    await until(() => !existsSync(scratch), 'the folder of one that ended without a hub is gone');
    expect(existsSync(folder.path('scratch/cat'))).toBe(true);
  } finally {
    await hub?.[Symbol.asyncDispose]();
  }
  expect(existsSync(folder.path('scratch/cat'))).toBe(false);
});

test('the example refuses a user, who reads why in the words of the hook', async () => {
  const config = runnable();
  await using _hub = await folder.start({
    ...config,
    Spawner: { ...config.Spawner, slow_start_timeout: 300 },
  });
  await folder.api('/users/bob', { method: 'POST' });
  const answer = await folder.api('/users/bob/server', { method: 'POST' });
  expect(answer.status).toBeGreaterThanOrEqual(500);
  expect(((await answer.json()) as { message: string }).message).toBe(
    'The hook "scratch" failed before the start: Your course has ended.',
  );
  expect(existsSync(folder.path('scratch/bob'))).toBe(false);
  const reported = await (await folder.api('/users/bob/server/progress?language=de')).text();
  expect(reported).toContain(
    'Der Hook „scratch“ ist vor dem Start fehlgeschlagen: Your course has ended.',
  );
});
