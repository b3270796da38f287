import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { asAdmin, call, createPopulatedHub } from '../support/populated-hub.ts';
import { until } from '../support/test-hub.ts';

interface Entry {
  readonly id: number;
  readonly action: string;
  readonly count: number;
  readonly target: { readonly name: string; readonly part: string | null };
}

test('a user who makes and deletes tokens without end hides nothing that others do', async () => {
  await using hub = await createPopulatedHub({ Hub: { audit_file: 'audit.jsonl' } }, [
    'eve',
    'root',
  ]);
  const asEve = (method: string, path: string, body?: object) =>
    call(hub, hub.tokens.eve, `/users/eve/tokens${path}`, method, body);
  await asAdmin(hub, '/users/root', 'PATCH', { admin: true });
  const made: string[] = [];
  for (let index = 0; index < 60; index += 1) {
    const { body } = await asEve('POST', '', { note: `note ${index}` });
    made.push(String(body['id']));
    await asEve('DELETE', `/${body['id']}`);
  }
  const { entries } = (await asAdmin(hub, '/audit?limit=25')) as unknown as {
    entries: readonly Entry[];
  };
  expect(entries.map(({ action }) => action)).toContain('user.change');
  const merged = entries.filter(({ count }) => count > 1);
  expect(merged.map(({ action, count }) => [action, count]).toSorted()).toEqual([
    ['token.create', 50],
    ['token.revoke', 50],
  ]);
  // Nothing is lost: which tokens, with which notes, and when.
  const creations = merged.find(({ action }) => action === 'token.create');
  const { entries: all } = await asAdmin(hub, `/audit/${creations?.id}`);
  expect(all).toMatchObject(
    made.slice(10).map((part, index) => ({
      target: { part },
      detail: { note: `note ${index + 10}` },
      count: 1,
    })),
  );
  expect((await call(hub, hub.tokens.eve, `/audit/${creations?.id}`)).status).toBe(403);
  expect((await call(hub, hub.tokens.root, '/audit/9999999')).status).toBe(404);
  expect((await call(hub, hub.tokens.root, '/audit/x')).status).toBe(404);

  const browser = await hub.logIn('root');
  const page = await browser.request(`${hub.url}hub/admin/activity`);
  expect(page.body).toContain('50 times');

  await hub.hub[Symbol.asyncDispose]();
  const file = join(hub.directory, 'audit.jsonl');
  const lines = async () =>
    (await readFile(file, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry & { readonly entries?: readonly Entry[] })
      .filter(({ action, target }) => action === 'token.create' && target.name === 'eve');
  await until(async () => (await lines()).some(({ count }) => count > 1), 'the end of the file');
  const written = (await lines()).flatMap(({ entries: ofLine, ...line }) => ofLine ?? [line]);
  expect(written.map(({ target }) => target.part)).toEqual(expect.arrayContaining(made));
  expect((await lines()).length).toBeLessThan(15);
});
