import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { sendAndLeave } from '../support/raw-request.ts';
import { adminToken, tokenOf } from '../support/server-hub.ts';
import { type TestHub, until } from '../support/test-hub.ts';

let hub: TestHub;
/** Of a user who administers services. */
let eve: string;
const path = '/services/ticker/output';

beforeAll(async () => {
  hub = await createPasswordHub(['bob', 'eve'], {
    Hub: {
      load_roles: [{ name: 'operator', scopes: ['admin:services', 'admin-ui'], users: ['eve'] }],
      services: [
        {
          name: 'ticker',
          // Goes on with each file that appears.
          command: [
            'sh',
            '-c',
            'echo one; echo two; n=0; while :; do if [ -e go.$n ]; then echo "go $n"; n=$((n+1)); fi; sleep 0.05; done',
          ],
        },
      ],
    },
  });
  eve = await tokenOf(hub, 'eve');
  await until(async () => (await (await output()).text()).includes('two'), 'it has written');
});
afterAll(async () => hub[Symbol.asyncDispose]());

const output = (query = '', { token = adminToken, accept = 'application/json' } = {}) =>
  hub.api(path + query, token, { headers: { accept } });

interface Published {
  readonly lines: readonly string[];
  readonly restarted?: true;
}

/** The events of an answer one by one; undefined once it has ended. */
function eventsOf(answer: Response) {
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return async (): Promise<Published | undefined> => {
    for (;;) {
      const end = text.indexOf('\n\n');
      if (end >= 0) {
        const event = text.slice(0, end);
        text = text.slice(end + 2);
        if (event.startsWith('data:')) return JSON.parse(event.slice(5)) as Published;
        continue;
      }
      const { done = true, value = '' } = (await reader?.read()) ?? {};
      if (done) return undefined;
      text += value;
    }
  };
}

describe('what a service writes is answered', () => {
  test('as JSON, as text, as a file, and no more of it than is asked for', async () => {
    expect(await (await output()).json()).toEqual({ lines: ['one', 'two'] });
    expect(await (await output('?lines=1')).json()).toEqual({ lines: ['two'] });
    const text = await output('', { accept: 'text/plain' });
    expect([text.headers.get('content-type'), text.headers.get('vary')]).toEqual([
      'text/plain; charset=utf-8',
      'Accept',
    ]);
    expect(await text.text()).toBe('one\ntwo\n');
    const file = await output('?download');
    expect(file.headers.get('content-disposition')).toBe(
      'attachment; filename="service-ticker.log"',
    );
    expect((await output('?lines=2000')).status).toBe(400);
  });

  test('to a page of the hub and to a window of its own, and to no other script', async () => {
    const browser = await hub.logIn('eve', testPassword);
    const page = await browser.request(`${hub.url}hub/admin/services/ticker`);
    expect(page.body).toContain('one\ntwo</pre>');
    const link = /href="([^"]+\?download)"/.exec(page.body)?.[1] ?? '';
    const read = (headers: Record<string, string>) =>
      browser.request(new URL(link, hub.url).href, { headers });
    const window = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    expect((await read({ 'sec-fetch-site': 'same-origin', ...window })).body).toContain('two');
    const script = { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' };
    expect((await read({ 'sec-fetch-site': 'same-origin', ...script })).status).toBe(403);
  });

  test('line by line to those who follow it', async () => {
    const next = eventsOf(await output('?lines=1', { accept: 'text/event-stream' }));
    expect(await next()).toEqual({ lines: ['two'] });
    await writeFile(join(hub.directory, 'go.0'), '');
    expect(await next()).toEqual({ lines: ['go 0'] });
  });

  test('to ten followers of a user at most, who let others in when they leave', async () => {
    const gone = new AbortController();
    const follow = (token: string) =>
      hub.api(`${path}?follow`, token, { signal: gone.signal }).then(({ status }) => status);
    const statuses = await Promise.all(Array.from({ length: 12 }, () => follow(eve)));
    expect(statuses.toSorted()).toEqual([...Array(10).fill(200), 429, 429]);
    expect(await follow(adminToken)).toBe(200);
    gone.abort();
    await until(async () => {
      const answer = await output('?follow', { token: eve });
      await answer.body?.cancel();
      return answer.status === 200;
    }, 'a follower can come again');
  });
});

test('a follower who is gone before the answer begins takes no place', async () => {
  const lines = [
    `GET ${new URL(`${hub.url}hub/api${path}`).pathname}?follow HTTP/1.1`,
    `Host: ${new URL(hub.url).host}`,
    `Authorization: token ${eve}`,
  ];
  for (let left = 40; left > 0; left -= 1) {
    await sendAndLeave(hub.url, `${lines.join('\r\n')}\r\n\r\n`);
  }
  await until(async () => {
    const answer = await output('?follow', { token: eve });
    await answer.body?.cancel();
    return answer.status === 200;
  }, 'a follower can come');
});

describe('a follower is parted with', () => {
  async function untilEnded(answer: Response, change: () => Promise<unknown>): Promise<void> {
    expect(answer.status).toBe(200);
    const next = eventsOf(answer);
    expect((await next())?.lines).toContain('two');
    await change();
    while ((await next()) !== undefined);
  }
  const send = (path: string, method: string, body: object) =>
    hub.api(path, adminToken, { method, body: JSON.stringify(body) });

  test('when the token is revoked', async () => {
    const made = await send('/users/eve/tokens', 'POST', { note: 'to be revoked' });
    const { id, token } = (await made.json()) as { id: string; token: string };
    const revoke = () => hub.api(`/users/eve/tokens/${id}`, adminToken, { method: 'DELETE' });
    await untilEnded(await output('?follow', { token }), revoke);
  });

  test('when the right is gone', async () => {
    await send('/roles/reader', 'POST', { scopes: ['admin:services'] });
    await send('/roles/reader/assignments', 'POST', { users: ['bob'] });
    const takeAway = () => send('/roles/reader/assignments', 'DELETE', { users: ['bob'] });
    await untilEnded(await output('?follow', { token: await tokenOf(hub, 'bob') }), takeAway);
  });

  test('when the login has ended', async () => {
    const browser = await hub.logIn('eve', testPassword);
    const page = await browser.request(`${hub.url}hub/admin/services/ticker`);
    const csrf = /name="csrf-token" content="([^"]+)"/.exec(page.body)?.[1] ?? '';
    const answer = await fetch(`${hub.apiUrl}${path}?follow`, {
      headers: {
        cookie: browser.cookieHeader(`${hub.url}hub/`),
        origin: new URL(hub.url).origin,
        'x-csrf-token': csrf,
      },
    });
    await untilEnded(answer, () => browser.request(`${hub.url}hub/logout`));
  });
});

test('a restart begins the lines again', async () => {
  const next = eventsOf(await output('?follow'));
  await next();
  await hub.api('/services/ticker/restart', adminToken, { method: 'POST' });
  const reported: Published[] = [];
  await until(async () => {
    const event = await next();
    if (event !== undefined) reported.push(event);
    return reported.some(({ lines }) => lines.includes('one'));
  }, 'what the new process writes is told');
});
