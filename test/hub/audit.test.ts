import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { endpoints } from '../../src/entrances/api/endpoints.ts';
import { auditActionsOf, type OperationDeclaration } from '../../src/operations/operation.ts';
import { operations } from '../../src/operations/operations.ts';
import { auditActions } from '../../src/platform/audit/actions.ts';
import { readCsv } from '../../src/platform/protocol/csv.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { submitLogin, type TestHub } from '../support/test-hub.ts';

let hub: TestHub;
beforeAll(async () => {
  hub = await createPasswordHub(['ada', 'bob'], {
    Hub: { audit_file: 'audit.jsonl', instance_name: 'hub-a' },
  });
});
afterAll(async () => hub[Symbol.asyncDispose]());

interface Entry {
  readonly id: number;
  readonly actor: Readonly<Record<'kind' | 'name' | 'session_id' | 'address', string | null>>;
  readonly action: string;
  readonly target: { readonly name: string; readonly part: string | null } | null;
  readonly result: string;
  readonly detail: Readonly<Record<string, unknown>>;
  readonly instance: string | null;
}

async function entriesOf(query: string): Promise<Entry[]> {
  const answer = await hub.api(`/audit?${query}`, 'admin-service-token');
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { entries: Entry[] }).entries;
}

const csrfOf = (page: string) => /name="_csrf" value="([^"]+)"/.exec(page)?.[1] ?? '';

test('a page and the API record the same deed, each with who did it', async () => {
  const ada = await hub.logIn('ada', testPassword);
  const page = await ada.request(`${hub.url}hub/admin/new-users`);
  await ada.request(`${hub.url}hub/admin/import-users`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      _csrf: csrfOf(page.body),
      people: 'by-page',
      act: 'import',
    }).toString(),
  });
  await hub.api('/users/by-api', 'admin-service-token', { method: 'POST' });
  const [byApi, byPage] = await entriesOf('action=user.create&limit=2');
  expect(byPage).toMatchObject({
    actor: { kind: 'user', name: 'ada', address: '127.0.0.1' },
    target: { kind: 'user', name: 'by-page', part: null },
    result: 'done',
    instance: 'hub-a',
  });
  expect(byPage?.actor.session_id).toEqual(expect.any(String));
  expect(byApi).toMatchObject({
    actor: { kind: 'service', name: 'admin-service', session_id: null },
    target: { name: 'by-api' },
  });
});

test('logins and logouts are there, and failed ones without a name that is no user’s', async () => {
  await submitLogin(new FakeBrowser(), hub.url, 'bob', 'wrong password');
  await submitLogin(new FakeBrowser(), hub.url, 'my secret password', 'bob');
  const bob = await hub.logIn('bob', testPassword);
  const home = await bob.request(`${hub.url}hub/home`);
  await bob.request(`${hub.url}hub/logout`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ _csrf: csrfOf(home.body) }).toString(),
  });
  const done = await entriesOf('target=bob&limit=2');
  expect(done.map(({ action }) => action)).toEqual(['logout', 'login']);
  expect(done[0]?.actor).toMatchObject({ kind: 'user', name: 'bob' });
  await vi.waitFor(
    async () => {
      const refused = await entriesOf('action=login&result=refused&limit=2');
      expect(refused).toMatchObject([
        { target: null, actor: { kind: 'anonymous' } },
        { target: { name: 'bob' }, detail: { authenticator: 'password', reason: 'credentials' } },
      ]);
    },
    { timeout: 240_000 },
  );
  const all = JSON.stringify(await entriesOf('limit=1000'));
  for (const secret of ['my secret password', 'wrong password', testPassword]) {
    expect(all).not.toContain(secret);
  }
});

test('what is refused is recorded, of operations that change and of those that read', async () => {
  const answer = await hub.api('/users/bob/tokens', 'admin-service-token', { method: 'POST' });
  const { token } = (await answer.json()) as { token: string };
  expect((await hub.api('/users/ada', token, { method: 'DELETE' })).status).toBe(403);
  expect((await hub.api('/users/ada', token)).status).toBe(404);
  expect((await hub.api('/audit', token)).status).toBe(403);
  await vi.waitFor(
    async () => {
      expect(await entriesOf('actor=bob&result=refused')).toMatchObject([
        { action: 'access', detail: { operation: 'listAudit', code: 'forbidden' } },
        { action: 'access', target: { name: 'ada' }, detail: { operation: 'getUser' } },
        { action: 'user.delete', target: { name: 'ada' }, detail: { operation: 'deleteUser' } },
      ]);
    },
    { timeout: 240_000 },
  );
  expect(JSON.stringify(await entriesOf('limit=1000'))).not.toContain(token);
});

test('pages follow one another, and a query that cannot be is refused with a word on it', async () => {
  const all = await entriesOf('limit=1000');
  const seen: number[] = [];
  let next: string | null = '';
  do {
    const after: string = next === '' ? '' : `&after=${next}`;
    const answer = await hub.api(`/audit?limit=4${after}`, 'admin-service-token');
    const page = (await answer.json()) as { entries: Entry[]; next: string | null };
    seen.push(...page.entries.map(({ id }) => id));
    next = page.next;
  } while (next !== null);
  expect(seen).toEqual(all.map(({ id }) => id));
  for (const query of [
    'after=x',
    'since=yesterday',
    'result=maybe',
    'limit=x',
    'until=2026-13-40',
  ]) {
    expect([query, (await hub.api(`/audit?${query}`, 'admin-service-token')).status]).toEqual([
      query,
      400,
    ]);
  }
});

test('the file has the same entries', async () => {
  const file = join(hub.directory, 'audit.jsonl');
  const all = await entriesOf('limit=1000');
  await vi.waitFor(
    async () => {
      const lines = (await readFile(file, 'utf8')).trimEnd().split('\n');
      const written = lines.map((line) => JSON.parse(line) as Entry);
      const byContent = (one: string, other: string) => (one < other ? -1 : 1);
      const contents = (entries: readonly Entry[]) =>
        entries.map(({ id, ...content }) => JSON.stringify(content)).toSorted(byContent);
      expect(contents(written)).toEqual(contents(all));
    },
    { timeout: 240_000 },
  );
});

test('the page shows and narrows it to those who may read it, and users see their own account', async () => {
  const ada = await hub.logIn('ada', testPassword);
  const page = await ada.request(`${hub.url}hub/admin/activity?target=by-api&action=user.create`);
  expect(page.status).toBe(200);
  expect(page.body).toContain('href="/hub/admin/users/by-api"');
  expect(page.body).toContain('Service admin-service');
  expect(page.body).toContain('<span title="user.create">User created</span>');
  const german = await ada.request(page.url, { headers: { 'accept-language': 'de' } });
  expect(german.body).toContain('<span title="user.create">Benutzer angelegt</span>');
  expect(page.body).not.toContain('by-page');
  for (const query of ['?after=x', '?since=x&result=x&limit=x']) {
    expect((await ada.request(`${hub.url}hub/admin/activity${query}`)).status).toBeLessThan(401);
  }
  for (const [path, body] of [
    ['/groups/crew', undefined],
    ['/groups/crew/users', { users: ['bob', 'by-api'] }],
  ] as const) {
    const init = { method: 'POST', ...(body && { body: JSON.stringify(body) }) };
    expect((await hub.api(path, 'admin-service-token', init)).ok).toBe(true);
  }
  const bob = await hub.logIn('bob', testPassword);
  expect((await bob.request(`${hub.url}hub/admin/activity`)).status).toBe(403);
  const account = await bob.request(`${hub.url}hub/account`);
  expect(account.body).toContain('Recent activity');
  expect(account.body).toContain('login');
  // Of a deed on many, users see that it was done to them, and not to whom else.
  expect(account.body).toContain('crew');
  expect(account.body).not.toContain('by-api');
});

test('whose activity it is can be logged out and suspended there, and what came from an address is found', async () => {
  const [ada, bob] = [await hub.logIn('ada', testPassword), await hub.logIn('bob', testPassword)];
  const url = `${hub.url}hub/admin/activity`;
  const page = await ada.request(`${url}?actor=bob`);
  expect(page.body).toContain('Logins of <a href="/hub/admin/users/bob">bob</a>');
  const [, from = ''] = /href="(\/hub\/admin\/activity\?address=[^"]+)"/.exec(page.body) ?? [];
  const { body } = await ada.request(new URL(from, hub.url).href);
  expect(body).toContain('/hub/admin/users/bob');
  expect((await ada.request(`${url}?address=192.0.2.1`)).body).toContain('Nothing matches.');
  const address = (await entriesOf('actor=bob&action=login'))[0]?.actor.address ?? '';
  expect(await entriesOf(`address=${address}&actor=bob&action=login`)).not.toHaveLength(0);
  expect(await entriesOf('address=192.0.2.1')).toEqual([]);
  expect((await submitTo(ada, page, '/hub/admin/users/bob/end-sessions')).status).toBe(303);
  expect((await bob.request(`${hub.url}hub/account`)).status).toBe(302);
  const ended = await ada.request(page.url);
  expect(ended.body).toContain('Not logged in anywhere.');
  expect((await submitTo(ada, ended, '/hub/admin/users/bob/suspend')).status).toBe(303);
  expect((await ada.request(page.url)).body).toContain('End suspension');
});

test('what the filter shows is exported as a file, beyond the page', async () => {
  const ada = await hub.logIn('ada', testPassword);
  const group = (name: string) =>
    hub.api(`/groups/${name}`, 'admin-service-token', { method: 'POST', body: '{}' });
  for (let index = 0; index < 60; index += 1) await group(`exported${index}`);
  const page = await ada.request(`${hub.url}hub/admin/activity?action=group.create`);
  const file = await submitTo(ada, page, '/hub/admin/activity.csv');
  expect(file.headers['content-disposition']).toContain('activity.csv');
  const { lines } = await readCsv(file.body);
  expect(lines[0]?.cells.slice(0, 3)).toEqual(['time', 'actor_kind', 'actor']);
  const rows = lines.slice(1).map(({ cells }) => cells);
  expect(new Set(rows.map((cells) => cells[6]))).toEqual(new Set(['group.create']));
  const made = rows.map((cells) => cells[8]);
  expect(made).toEqual(expect.arrayContaining(['exported0', 'exported59']));
});

test('each operation that is no GET says what it is in the log, or why it is not', () => {
  const all: readonly OperationDeclaration[] = [...operations, ...Object.values(endpoints)];
  for (const { id, method, audit } of all) {
    if (method === 'GET') continue;
    expect(audit, id).toBeDefined();
    for (const action of auditActionsOf({ ...(audit !== undefined && { audit }) })) {
      expect(auditActions, id).toHaveProperty([action]);
    }
  }
});
