import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { getServer, serverPath, startUntilReady } from '../support/server-hub.ts';
import { createTestHub, submitForm } from '../support/test-hub.ts';

const project = join(import.meta.dirname, '..', '..');
const command = [process.execPath, join(project, 'examples/workspace/workspace.ts')];

test.each([
  ['the gateway', { access: 'gateway', cmd: [...command, '{socket}'] }],
  ['hub-singleuser', { cmd: ['hub-singleuser', '--', ...command] }],
])(
  'the workspace keeps a person’s files behind %s, and no other files',
  async (_guard, settings) => {
    await using hub = await createTestHub({
      Spawner: { ...settings, home_dir: 'homes/{username}' },
    });
    const alice = await hub.logIn('alice');
    const started = await hub.api('/users/alice/server', 'admin-service-token', { method: 'POST' });
    expect([201, 202]).toContain(started.status);

    const files = `${hub.url}user/alice/files/`;
    const empty = await alice.open(`${hub.url}user/alice/`);
    expect(empty.status).toBe(200);
    expect(empty.body).toContain('This folder is empty');
    expect(empty.body).toContain('Workspace of alice');

    const made = await submitForm(alice, empty, { name: 'ideas <1>.md', action: 'new-file' });
    expect(made.status).toBe(303);
    const editor = await alice.open(new URL(made.headers.location ?? '', hub.url).href);
    const saved = await submitForm(alice, editor, {
      text: 'tea & <b>biscuits</b>',
      action: 'save',
    });
    expect(saved.status).toBe(303);
    const again = await alice.open(new URL(saved.headers.location ?? '', hub.url).href);
    expect(again.body).toContain('tea &#38; &#60;b&#62;biscuits');
    expect(again.body).toContain('Saved.');
    const home = join(hub.directory, 'homes', 'alice');
    expect(await readFile(join(home, 'ideas <1>.md'), 'utf8')).toBe('tea & <b>biscuits</b>');

    const upload = await alice.request(`${files}data.bin`, {
      method: 'PUT',
      body: 'bytes',
      headers: { 'sec-fetch-mode': 'cors', 'sec-fetch-site': 'same-origin' },
    });
    expect(upload.status).toBe(204);
    expect((await alice.open(`${files}data.bin?download`)).body).toBe('bytes');

    // Nothing leads out of the folder: not dots, not a link.
    await writeFile(join(hub.directory, 'secret.txt'), 'secret');
    await symlink(hub.directory, join(home, 'way-out'));
    for (const path of ['way-out/secret.txt', '..%2fsecret.txt']) {
      const answer = await alice.request(files + path);
      expect([400, 404]).toContain(answer.status);
      expect(answer.body).not.toContain('secret.txt</textarea>');
    }

    const bob = await hub.logIn('bob');
    expect((await bob.open(files)).status).toBe(403);
  },
);

test.each([
  ['the gateway', { access: 'gateway', strip_prefix: true, ready_path: '/api' }],
  ['hub-singleuser', {}],
])('in a full home a file browser starts behind %s, in which room is made', async (_, settings) => {
  // As if there were no room left.
  const full = { home_min_free: '1000000T', home_dir: 'homes/{username}', cmd: 'false' };
  await using hub = await createTestHub({ Spawner: { ...settings, ...full } });
  const home = join(hub.directory, 'homes', 'alice');
  await mkdir(home, { recursive: true });
  await writeFile(join(home, 'large.bin'), 'much');
  const alice = await hub.logIn('alice');
  await startUntilReady(hub, serverPath('alice'));
  expect(await getServer(hub, serverPath('alice'))).toMatchObject({ rescue: true });
  const page = await alice.open(`${hub.url}hub/servers/alice`);
  expect(page.body).toContain('The home has no room left');
  expect(page.body).toMatch(/Home folder<\/dt><dd>[\d.,]+ \wB of [\d.,]+ \wB used/);

  const files = `${hub.url}user/alice/files/`;
  expect((await alice.open(`${hub.url}user/alice/`)).body).toContain('large.bin');
  const asked = await alice.open(`${files}large.bin?delete`);
  expect((await submitForm(alice, asked, { action: 'delete' })).status).toBe(303);
  expect((await alice.open(files)).body).toContain('This folder is empty');
});

test('in a home that may only be read nothing is changed, and the person is told so', async () => {
  await using hub = await createTestHub({
    Spawner: {
      access: 'gateway',
      cmd: [...command, '{socket}'],
      home_dir: '/proc/sys/kernel',
      home_min_free: '1000000T',
    },
  });
  const alice = await hub.logIn('alice');
  await startUntilReady(hub, serverPath('alice'));
  expect(await getServer(hub, serverPath('alice'))).toMatchObject({ rescue: false });
  const asked = await alice.open(`${hub.url}user/alice/files/ostype?delete`);
  const refused = await submitForm(alice, asked, { action: 'delete' });
  expect(refused.status).toBe(403);
  expect(refused.body).toContain('This may only be read.');
});
