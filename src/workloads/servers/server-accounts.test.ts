import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createDecideAccount } from './server-accounts.ts';

const folder = mkdtempSync(join(tmpdir(), 'accounts-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Accounts are files: the command makes one. */
const accountFile = (name: string) => join(folder, name);
const findId = async (name: string) => (existsSync(accountFile(name)) ? 50_000 : undefined);

const decide = (claimed: string, create_system_users?: string[]) =>
  createDecideAccount(
    {
      system_user: 'jupyter-{username}',
      ...(create_system_users !== undefined && { create_system_users }),
      home_dir: '/home/{username}',
      allowed_system_users: [],
      volumes: [],
      profiles: [],
    },
    { claim: async () => claimed },
    false,
    findId,
  )({ name: claimed } as never);

const append = ['sh', '-c', 'echo made >> "$1"', 'sh', `${folder}/{account}`];

test('an account that is not there is made once, by the command of the operator', async () => {
  expect(await decide('ada', append)).toMatchObject({ systemUser: 'jupyter-ada' });
  expect(await decide('ada', append)).toMatchObject({ systemUser: 'jupyter-ada' });
  expect(readFileSync(accountFile('jupyter-ada'), 'utf8')).toBe('made\n');
});

test('a command that fails, or a name that is none, keeps the server from starting', async () => {
  const error = { code: 'upstream_failed' };
  await expect(decide('bob', ['false'])).rejects.toMatchObject(error);
  await expect(decide('bob', [join(folder, 'nothing')])).rejects.toMatchObject(error);
  await expect(decide('bob smith; x', append)).rejects.toMatchObject(error);
  // Another start was quicker.
  const late = ['sh', '-c', 'touch "$1"; exit 9', 'sh', `${folder}/{account}`];
  expect(await decide('grace', late)).toMatchObject({ systemUser: 'jupyter-grace' });
});
