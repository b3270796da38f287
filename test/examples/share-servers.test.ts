import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readJsonc } from '../../src/platform/config/read-jsonc.ts';
import { requires } from '../support/requires.ts';
import { adminToken, createUsers, tokenOf } from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';

const page = readFileSync(join(projectDirectory, 'docs/how-to/share-servers.md'), 'utf8');
const blockOf = (language: string) =>
  new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, 'm').exec(page)?.[1] ?? '';

/** The commands of the page, each with those after it on continued lines. */
const commands = blockOf('sh')
  .replaceAll('\\\n', '')
  .split('\n')
  .filter((line) => line.startsWith('curl '));

let hub: TestHub;

beforeAll(async () => {
  const shown = readJsonc(blockOf('jsonc')).value as { Hub: Record<string, unknown> };
  hub = await createTestHub({
    Hub: { ...shown.Hub, load_groups: [{ name: 'staff', users: ['alice'] }] },
    Spawner: { cmd: ['sleep', '1000'] },
  });
  await createUsers(hub, 'alice', 'bob', 'carol');
});
afterAll(() => hub[Symbol.asyncDispose]());

async function run(command: string, token: string): Promise<Record<string, never>> {
  const { stdout } = await promisify(execFile)('sh', ['-c', command], {
    env: { ...process.env, HUB: hub.url.slice(0, -1), TOKEN: token },
  });
  return stdout === '' ? {} : JSON.parse(stdout);
}

test.skipIf(!requires('curl'))('the commands do what the page says', async () => {
  const token = await tokenOf(hub, 'alice');
  expect(commands).toHaveLength(6);
  const [share, more, link, list, takeBack, deleteLinks] = commands.map(
    (command) => () => run(command, token),
  );
  const access = 'access:servers!server=alice/';
  const all = [access, 'read:servers!server=alice/', 'start:servers!server=alice/'];
  expect(await share?.()).toMatchObject({ user: { name: 'bob' }, scopes: [access] });
  expect(await more?.()).toMatchObject({ scopes: all });
  expect(await link?.()).toMatchObject({ full_accept_url: expect.stringContaining(hub.url) });
  expect(await list?.()).toMatchObject({ items: [{ scopes: all }] });
  expect(await takeBack?.()).toEqual({});
  expect(await deleteLinks?.()).toEqual({});
  const left = await hub.api('/share-codes/alice', adminToken);
  expect(await left.json()).toMatchObject({ items: [] });
});

test('with this configuration all may make links, and some name others', async () => {
  const carol = await tokenOf(hub, 'carol');
  const post = (path: string, body: object) =>
    hub.api(path, carol, { method: 'POST', body: JSON.stringify(body) });
  expect((await post('/share-codes/carol/', {})).status).toBe(200);
  expect((await post('/shares/carol/', { user: 'bob' })).status).toBe(403);
});
