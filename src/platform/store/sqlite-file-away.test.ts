import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { addUser, userNames, userRow, useSqliteFile } from '../../../test/support/sqlite-world.ts';

const world = useSqliteFile();

describe('an SQLite database', () => {
  test.each([
    ['deleted', () => rmSync(world.file)],
    [
      'replaced',
      () => {
        copyFileSync(world.file, join(world.directory, 'backup'));
        renameSync(join(world.directory, 'backup'), world.file);
      },
    ],
  ])('refuses writes when its file was %s under it, and says so', async (happened, act) => {
    const lines: Record<string, unknown>[] = [];
    const telling = pino({}, { write: (line) => lines.push(JSON.parse(line)) });
    const database = await world.open('sqlite:hub.sqlite', telling);
    await addUser(database, 'alice');
    expect(await userNames(database)).toEqual(['alice']);
    act();
    await expect.poll(() => `${database.problem()}`).toContain(happened);
    const refusal = { code: 'storage_unavailable', message: expect.stringContaining(happened) };
    await expect(addUser(database, 'bob')).rejects.toMatchObject(refusal);
    const transaction = database.transaction(async () => 'never');
    await expect(transaction).rejects.toMatchObject(refusal);
    expect(await userNames(database)).toEqual(['alice']);
    expect(lines.filter(({ level }) => level === 50)).toMatchObject([
      { file: world.file, msg: expect.stringContaining(happened) },
    ]);
  });

  test('refuses writes while its log file is away, and takes them once it is back', async () => {
    const database = await world.open();
    await addUser(database, 'alice');
    renameSync(`${world.file}-wal`, join(world.directory, 'aside'));
    await expect.poll(() => `${database.problem()}`).toContain('deleted');
    await expect(addUser(database, 'bob')).rejects.toMatchObject({ code: 'storage_unavailable' });
    renameSync(join(world.directory, 'aside'), `${world.file}-wal`);
    await expect.poll(() => database.problem()).toBeUndefined();
    await addUser(database, 'carol');
    await database[Symbol.asyncDispose]();
    expect(await userNames(await world.open())).toEqual(['alice', 'carol']);
  });

  test('refuses to commit what began before its file was deleted', async () => {
    const database = await world.open();
    expect(await userNames(database)).toEqual([]);
    const transaction = database.transaction(async (within) => {
      await within.insertInto('users').values(userRow('alice')).execute();
      rmSync(world.file);
      await expect.poll(() => `${database.problem()}`).toContain('deleted');
    });
    await expect(transaction).rejects.toMatchObject({ code: 'storage_unavailable' });
    expect(await userNames(database)).toEqual([]);
  });
});
