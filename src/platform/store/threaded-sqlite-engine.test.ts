import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { SqliteEngine } from './sqlite-engine.ts';
import { openThreadedEngine } from './threaded-sqlite-engine.ts';

/** Keeps SQLite at work for a few hundred milliseconds, as a slow disk would. */
const slowStatement = `with recursive counter(value) as
  (select 1 union all select value + 1 from counter where value < 2000000)
  select max(value) as highest from counter`;

let directory: string;
let engine: SqliteEngine;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'hub-sqlite-thread-'));
  engine = await openThreadedEngine({ file: join(directory, 'hub.sqlite'), lockTimeoutMs: 0 });
  await engine.run('create table notes (id integer primary key, text text, data blob)', []);
});
afterEach(async () => {
  await engine.close();
  rmSync(directory, { recursive: true, force: true });
});

test('others have their turn while a statement takes long', async () => {
  let isOver = false;
  let turns = 0;
  const takeTurn = () => {
    turns += 1;
    if (!isOver) setImmediate(takeTurn);
  };
  setImmediate(takeTurn);
  const { rows } = await engine.run(slowStatement, []);
  isOver = true;
  expect(rows).toEqual([{ highest: 2_000_000 }]);
  expect(turns).toBeGreaterThan(3);
});

test('answers in the order of the questions, with values of every kind', async () => {
  const data = new Uint8Array([0, 1, 255]);
  const [inserted, , found] = await Promise.all([
    engine.run('insert into notes values (?, ?, ?)', [7, 'ä', data]),
    engine.run('insert into notes values (?, ?, ?)', [8, null, null]),
    engine.run('select * from notes order by id', []),
  ]);
  expect(inserted).toEqual({ rows: [], changes: 1, lastInsertRowid: 7 });
  expect(found.rows).toEqual([
    { id: 7, text: 'ä', data },
    { id: 8, text: null, data: null },
  ]);
});

test('tells whether a transaction is open', async () => {
  expect(engine.isInTransaction).toBe(false);
  await engine.run('begin immediate', []);
  expect(engine.isInTransaction).toBe(true);
  await engine.run('commit', []);
  expect(engine.isInTransaction).toBe(false);
});

test('errors keep what tells them apart, and the next statement gets its own answer', async () => {
  await engine.run('insert into notes (id) values (1)', []);
  const twice = engine.run('insert into notes (id) values (1)', []);
  const unsendable = engine.run('select ?', [(() => 1) as unknown as string]);
  const counted = engine.run('select count(*) as count from notes', []);
  await Promise.all([
    expect(twice).rejects.toMatchObject({ code: 'ERR_SQLITE_ERROR', errcode: 1555 }),
    expect(twice).rejects.toThrow(/UNIQUE constraint failed: notes.id/),
    expect(unsendable).rejects.toThrow(/could not be cloned/),
    expect(counted).resolves.toMatchObject({ rows: [{ count: 1 }] }),
  ]);
});

test('closes behind what was asked before, and refuses what comes after', async () => {
  const asked = engine.run(slowStatement, []);
  const closed = engine.close();
  expect((await asked).rows).toHaveLength(1);
  await closed;
  await expect(engine.run('select 1', [])).rejects.toMatchObject({ code: 'storage_unavailable' });
});

test('a process that forgets to close it still ends, and not before its last answer', async () => {
  const program = `
    const { openThreadedEngine } = await import(${JSON.stringify(import.meta.resolve('./threaded-sqlite-engine.ts'))});
    const engine = await openThreadedEngine({ file: 'forgotten.sqlite', lockTimeoutMs: 0 });
    const { rows } = await engine.run(${JSON.stringify(slowStatement)}, []);
    console.log(rows[0].highest);
  `;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '--eval', program],
    { cwd: directory },
  );
  expect(stdout).toBe('2000000\n');
});

test('a thread takes the next file when its own is closed, but not one that could not be opened', async () => {
  await engine.run('begin immediate', []);
  await engine.close();
  let started = 0;
  const count = () => {
    started += 1;
  };
  process.on('worker', count);
  try {
    const away = { file: join(directory, 'away', 'hub.sqlite'), lockTimeoutMs: 0 };
    await expect(openThreadedEngine(away)).rejects.toMatchObject({ errcode: 14 });
    engine = await openThreadedEngine({ file: join(directory, 'next.sqlite'), lockTimeoutMs: 250 });
    expect(engine.isInTransaction).toBe(false);
    expect((await engine.run('pragma busy_timeout', [])).rows).toEqual([{ timeout: 250 }]);
    await expect(engine.run('select * from notes', [])).rejects.toThrow('no such table: notes');
    expect(started).toBe(0);
  } finally {
    process.off('worker', count);
  }
});

test('no query waits for ever when the thread ends', async () => {
  const sent = vi.spyOn(Worker.prototype, 'postMessage');
  await engine.run('begin immediate', []);
  const [thread] = sent.mock.contexts as Worker[];
  sent.mockRestore();
  const asked = engine.run(slowStatement, []);
  const refused = expect(asked).rejects.toMatchObject({ code: 'storage_unavailable' });
  await thread?.terminate();
  await refused;
  expect(engine.isInTransaction).toBe(false);
  await expect(engine.run('select 1', [])).rejects.toThrow(/thread of the database has ended/);
});

test('tells of each of several statements what it did, or why it failed', async () => {
  const insert = 'insert into notes (id, text) values (?, ?)';
  const outcomes = await engine.runTogether([
    { sql: insert, parameters: [1, 'one'] },
    { sql: insert, parameters: [1, 'again'] },
    { sql: 'update notes set text = ? returning text', parameters: ['changed'] },
  ]);
  expect(outcomes).toMatchObject([
    { result: { changes: 1, lastInsertRowid: 1 } },
    { error: { code: 'ERR_SQLITE_ERROR', errcode: 1555 } },
    { result: { rows: [{ text: 'changed' }] } },
  ]);
  expect(engine.isInTransaction).toBe(false);
});

test('waits for the lock of another process in its thread, but not again while that stays', async () => {
  const file = join(directory, 'hub.sqlite');
  const waiting = await openThreadedEngine({ file, lockTimeoutMs: 300 });
  const timeout = async () => (await waiting.run('pragma busy_timeout', [])).rows;
  const add = () => waiting.run("insert into notes (text) values ('a')", []);
  try {
    using holder = new DatabaseSync(file);
    holder.exec('begin immediate');
    let isOver = false;
    let turns = 0;
    const takeTurn = () => {
      turns += 1;
      if (!isOver) setImmediate(takeTurn);
    };
    setImmediate(takeTurn);
    await expect(add()).rejects.toMatchObject({ errcode: 5 });
    isOver = true;
    expect(turns).toBeGreaterThan(3);
    expect(await timeout()).toEqual([{ timeout: 0 }]);
    // Something was answered.
    expect(await timeout()).toEqual([{ timeout: 300 }]);
    const adding = add();
    setTimeout(() => holder.exec('commit'), 1);
    expect(await adding).toMatchObject({ changes: 1 });
  } finally {
    await waiting.close();
  }
});
