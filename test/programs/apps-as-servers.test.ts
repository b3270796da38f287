import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { guardedNotebook } from '../support/guarded-notebook.ts';
import { pathOf, requires } from '../support/requires.ts';
import {
  createServerHub,
  createUsers,
  serverPath,
  startUntilReady,
} from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

/** A hub whose gateway alone stands before a program that nobody here wrote, which runs for alice. */
async function startFor(Spawner: object) {
  const hub = await createServerHub({
    Spawner: { http_timeout: 120, start_timeout: 120, ...Spawner },
  });
  await createUsers(hub, 'alice');
  await startUntilReady(hub, serverPath('alice'));
  return { hub, page: `${hub.url}user/alice/`, alice: await hub.logIn('alice') };
}

test.skipIf(!requires('jupyter-notebook', 'ipykernel'))(
  'Jupyter Notebook runs code on a socket, until its user logs out',
  async () => {
    const { hub, page, alice } = await startFor({
      ...guardedNotebook(),
    });
    await using _hub = hub;
    const tree = await alice.open(`${page}tree`);
    expect(tree.body).toContain('data-base-url="/user/alice/"');
    const made = await alice.request(`${page}api/kernels`, {
      method: 'POST',
      body: '{}',
      headers: {
        'content-type': 'application/json',
        'x-xsrftoken': alice.cookie('_xsrf')?.value ?? '',
        'sec-fetch-mode': 'cors',
        'sec-fetch-site': 'same-origin',
      },
    });
    const { id } = JSON.parse(made.body) as { id: string };
    const address = `${page}api/kernels/${id}/channels`;
    const socket = new WebSocket(address.replace('http', 'ws'), {
      headers: { cookie: alice.cookieHeader(address), origin: new URL(page).origin },
    });
    const said: string[] = [];
    socket.on('message', (message) => said.push(String(message)));
    await once(socket, 'open');
    const header = {
      msg_id: 'one',
      msg_type: 'execute_request',
      username: 'alice',
      session: 'one',
      version: '5.3',
      date: new Date(0).toISOString(),
    };
    const content = {
      code: 'print(6 * 7)',
      silent: false,
      store_history: false,
      stop_on_error: true,
    };
    const execute = { header, parent_header: {}, metadata: {}, content, channel: 'shell' };
    socket.send(JSON.stringify(execute));
    await until(() => said.some((each) => each.includes('"42\\n"')), 'the kernel has answered');
    const closed = once(socket, 'close');
    await alice.request(`${hub.url}hub/logout`);
    expect((await closed)[0]).toBe(1008);
  },
  300_000,
);

test.skipIf(!requires('python3'))(
  'the web server of Python, which knows no prefix, shows a folder to its user alone',
  async () => {
    const { hub, page, alice } = await startFor({
      cmd: [pathOf('python3'), '-m', 'http.server', '--bind', '{ip}', '{port}'],
      strip_prefix: true,
    });
    await using _hub = hub;
    await writeFile(join(hub.directory, 'homes', 'alice', 'poem.txt'), 'tea');
    expect((await alice.open(page)).body).toContain('href="poem.txt"');
    expect((await alice.open(`${page}poem.txt`)).body).toBe('tea');
    const bob = await hub.logIn('bob');
    expect((await bob.open(`${page}poem.txt`)).status).toBe(403);
  },
);

test.skipIf(!requires('shellinabox', 'root'))(
  'Shell In A Box opens a terminal on a socket, without a prefix',
  async () => {
    const { hub, page, alice } = await startFor({
      cmd: [
        pathOf('shellinabox'),
        '--disable-ssl',
        '--unixdomain-only={socket}:root:root:600',
        '--service=/:root:root:/:echo tea for alice',
      ],
      strip_prefix: true,
    });
    await using _hub = hub;
    expect((await alice.open(page)).body).toContain('ShellInABox.js');
    const ask = async (fields: Record<string, string>) => {
      const answer = await alice.request(`${page}?`, {
        method: 'POST',
        body: new URLSearchParams({ width: '80', height: '24', ...fields }).toString(),
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          'sec-fetch-mode': 'cors',
          'sec-fetch-site': 'same-origin',
        },
      });
      return JSON.parse(answer.body) as { session: string; data: string };
    };
    const { session } = await ask({ rooturl: page });
    expect((await ask({ session })).data).toContain('tea for alice');
  },
);
