import { rm, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readMachineId } from '../../src/spawning/processes/machine-id.ts';
import type { BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  serverPath,
  startServer,
  startUntilReady,
  stopServer,
  submitFormTo,
  tokenOf,
  untilServer,
} from '../support/server-hub.ts';
import { type TestHub, until } from '../support/test-hub.ts';

const alice = serverPath('alice');
/** Starts well once there is a file, or waits while there is another. */
const cmd = [
  'sh',
  '-c',
  'echo "hello from $0"; while [ -e "$HUB_TEST/wait" ]; do sleep 0.05; done; [ -e "$HUB_TEST/good" ] || { echo "no good"; exit 3; }; exec "$@"',
  'sh',
  ...fixtureApp('web-server'),
];

let hub: TestHub;
let owner: FakeBrowser;
let admin: FakeBrowser;

beforeAll(async () => {
  hub = await createServerHub({
    Hub: { allow_named_servers: true, cleanup_servers: false },
    Authenticator: { admin_users: ['root'] },
    Spawner: {
      cmd,
      mem_limit: '2G',
      environment: { HUB_TEST: '{directory}' },
      profiles: [{ name: 'small', display_name: 'Small & cheap' }, { name: 'large' }],
    },
  });
  await createUsers(hub, 'alice', 'bob');
  owner = await hub.logIn('alice');
  admin = await hub.logIn('root');
});
afterAll(async () => {
  await stopServer(hub, alice);
  await hub[Symbol.asyncDispose]();
});

const pageOf = (browser: FakeBrowser, path = 'alice'): Promise<BrowserAnswer> =>
  browser.open(`${hub.url}hub/servers/${path}`);
const file = (name: string) => join(hub.directory, name);

/** Presses a button of the page of alice's server. */
async function press(browser: FakeBrowser, action: RegExp): Promise<string> {
  const answer = await submitFormTo(browser, await pageOf(browser), action);
  expect(answer.status).toBe(303);
  expect(answer.headers.location).toBe('/hub/servers/alice');
  return (await pageOf(browser)).body;
}

describe('the page of a server', () => {
  test('shows one that never ran to its owner, and none to others', async () => {
    const page = await pageOf(owner);
    expect(page.status).toBe(200);
    expect(page.body).toContain('Stopped');
    const bob = await hub.logIn('bob');
    for (const path of ['alice', 'alice/thesis', 'nobody']) {
      expect((await pageOf(bob, path)).status).toBe(404);
    }
    expect((await pageOf(owner, 'alice/thesis')).status).toBe(404);
  });

  test('keeps the last failure with its output until a start goes well, over a restart of the hub too', async () => {
    await startServer(hub, alice, { user_options: { profile: 'small' } });
    await untilServer(hub, alice, ({ failure }) => failure !== null, 'it has failed');
    const failed = (await pageOf(owner)).body;
    expect(failed).toMatch(/Why it failed[\s\S]*code 3\)[\s\S]*no good/);
    expect(failed).toContain('Small &amp; cheap');
    expect((await owner.open(`${hub.url}hub/home`)).body).toContain(
      'href="/hub/servers/alice">View error</a>',
    );

    hub = await hub.restart();
    expect((await pageOf(owner)).body).toContain('no good');

    // During the next start, and after one that was cancelled.
    await writeFile(file('wait'), '');
    const starting = await press(owner, /restart-server/);
    expect(starting).toContain('Your server is starting.');
    expect(starting).toMatch(/The failure before[\s\S]*no good/);
    expect(await getServer(hub, alice)).toMatchObject({ pending: 'spawn', failure: null });
    await press(owner, /hub\/stop/);
    await untilServer(hub, alice, ({ stopped }) => stopped, 'it is cancelled');
    expect((await pageOf(owner)).body).toContain('no good');

    await writeFile(file('good'), '');
    await rm(file('wait'));
    await startUntilReady(hub, alice);
    const running = (await pageOf(owner)).body;
    expect(running).toContain('Running');
    expect(running).not.toContain('no good');
    expect(running).toContain('hello from sh');
  });

  test('tells administrators where it runs, and its owner what it may use', async () => {
    const [own, theirs] = await Promise.all([pageOf(owner), pageOf(admin)]);
    expect(own.body).toContain('2.1 GB');
    expect(own.body).not.toContain('<dt>Process</dt>');
    const { state } = await getServer(hub, alice);
    expect(theirs.body).toContain(`<dt>Process</dt><dd>${state?.['pid']}</dd>`);
    expect(theirs.body).toContain(`<dt>Runs at</dt><dd>${basename(hub.directory)}</dd>`);
    // A hash, which says nothing to a reader.
    expect(theirs.body).not.toContain(readMachineId());
    expect(theirs.body).toContain('<a href="/hub/admin/users/alice">alice</a>');
    for (const [{ body }, ...more] of [[own], [theirs, 'Share…']] as const) {
      expect(body).toMatch(/Running<\/span> <span class="soft">Started <time /);
      expect(body).toContain('<dt>Address</dt><dd><code>/user/alice/</code></dd>');
      const offered = [...body.matchAll(/<(?:a|button) class="button[^>]*>([^<]+)</g)];
      expect(offered.map(([, label]) => label)).toEqual(
        expect.arrayContaining(['Restart', 'Stop', 'Open', 'Download', ...more]),
      );
    }
    const user = await admin.open(`${hub.url}hub/admin/users/alice`);
    expect(user.body).toContain('<a href="/hub/servers/alice">Default server</a>');
    expect(user.body).toContain('href="/user/alice/" aria-label="Open the default server"');
  });

  test('plots what it used, within what a page may weigh', async () => {
    let page = '';
    await until(async () => {
      page = (await pageOf(owner)).body;
      return page.includes('<title>Memory, the last hour: now');
    }, 'it is measured');
    expect(page).toMatch(/<path class="line" d="M\d[^"]*"\/><path class="limit"/);
    expect(page).toMatch(/<th scope="row">Last 5 minutes<\/th>/);
    expect(Buffer.byteLength(page)).toBeLessThan(60_000);
    const day = (await pageOf(owner, 'alice?span=day')).body;
    expect(day).toContain('Memory, the last day');
  });

  test('restarts it with the same options, by a button of those who may', async () => {
    const { state, user_options: before } = await getServer(hub, alice);
    const page = await press(admin, /restart-server/);
    expect(page).toContain('Server of alice is restarting.');
    const after = await untilServer(
      hub,
      alice,
      (server) => server.ready && server.state?.['pid'] !== state?.['pid'],
      'another process is there',
    );
    expect(after.user_options).toEqual(before);
    const forged = await owner.request(`${hub.url}hub/restart-server/alice`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: '_csrf=forged',
    });
    expect(forged.status).toBe(403);
  });

  test('does not stop it for a new start that maintenance would refuse', async () => {
    const before = await getServer(hub, alice);
    const body = JSON.stringify({ text: 'New disks.' });
    expect((await hub.api('/maintenance', adminToken, { method: 'PUT', body })).ok).toBe(true);
    try {
      const refused = await submitFormTo(owner, await pageOf(owner), /restart-server/);
      expect(refused.status).toBe(503);
      expect(await getServer(hub, alice)).toMatchObject({ ready: true, state: before.state });
    } finally {
      await hub.api('/maintenance', adminToken, { method: 'DELETE' });
    }
  });

  test('stops it, and asks before a named one is deleted', async () => {
    expect(await press(owner, /hub\/stop/)).toContain('Your server is stopping.');
    await untilServer(hub, alice, ({ stopped }) => stopped, 'it has stopped');
    await hub.api(serverPath('alice', 'thesis'), adminToken, { method: 'PUT', body: '{}' });
    const page = await pageOf(admin, 'alice/thesis');
    const link = /href="(\/hub\/delete-server[^"]+)"/.exec(page.body)?.[1] ?? '';
    const question = await admin.open(new URL(link, hub.url).href);
    expect(question.body).toContain('href="/hub/servers/alice/thesis">Cancel');
    const deleted = await submitFormTo(admin, question, /delete-server/);
    expect(deleted.headers.location).toBe('/hub/admin/users/alice');
  });
});

test('what a server writes is answered to those who may open it, and followed', async () => {
  await startUntilReady(hub, alice);
  const output = (token: string, query = '') => hub.api(`${alice}/output${query}`, token);
  const own = await output(await tokenOf(hub, 'alice'));
  expect(await own.json()).toEqual({ lines: expect.arrayContaining(['hello from sh']) });
  expect((await output(await tokenOf(hub, 'bob'))).status).toBe(404);
  const download = await output(adminToken, '?download');
  expect(download.headers.get('content-disposition')).toBe('attachment; filename="alice.log"');
  const following = await output(adminToken, '?follow');
  const reader = following.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  await stopServer(hub, alice);
  await untilServer(hub, alice, ({ stopped }) => stopped, 'it has stopped');
  await startUntilReady(hub, alice);
  await until(async () => {
    text += (await reader?.read())?.value ?? '';
    return text.includes('"restarted":true');
  }, 'the follower sees the new start');
  await reader?.cancel();
});
