import { mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openAuditFile } from './audit-file.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hub-audit-file-'));
});
afterAll(async () => rm(directory, { recursive: true }));

const patience = { timeout: 10_000, interval: 20 };

function startLog() {
  const messages: string[] = [];
  const write = (line: string) => void messages.push((JSON.parse(line) as { msg: string }).msg);
  return { messages, log: pino({ level: 'info' }, { write }) };
}

const linesOf = async (file: string) =>
  (await readFile(file, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '');

test('goes on in a new file once the former one was moved away', async () => {
  const file = join(directory, 'rotated.jsonl');
  const { log } = startLog();
  await using audit = openAuditFile({ file, log });
  audit.write({ id: 1 });
  await vi.waitFor(async () => expect(await linesOf(file)).toEqual(['{"id":1}']), patience);
  await rename(file, `${file}.1`);
  audit.write({ id: 2 });
  await vi.waitFor(async () => expect(await linesOf(file)).toEqual(['{"id":2}']), patience);
  expect(await linesOf(`${file}.1`)).toEqual(['{"id":1}']);
  expect(audit.droppedLines).toBe(0);
});

test('waits for room on a full disk, and says so once', async () => {
  const file = join(directory, 'full.jsonl');
  await symlink('/dev/full', file);
  const { log, messages } = startLog();
  await using audit = openAuditFile({ file, log });
  audit.write({ id: 1 });
  await vi.waitFor(() => expect(messages).toHaveLength(1), patience);
  audit.write({ id: 2 });
  await rm(file);
  await vi.waitFor(
    async () => expect(await linesOf(file)).toEqual(['{"id":1}', '{"id":2}']),
    patience,
  );
  expect(messages).toEqual([
    'audit file (Hub.audit_file) cannot be written',
    'audit file can be written again',
  ]);
  expect(audit.droppedLines).toBe(0);
});

test('loses lines beyond what may wait, counts them, and takes no time', async () => {
  const file = join(directory, 'no-such-folder', 'audit.jsonl');
  const { log } = startLog();
  const audit = openAuditFile({ file, log });
  const text = 'x'.repeat(10_000);
  for (let id = 0; id < 1_000; id += 1) audit.write({ id, text });
  expect(audit.droppedLines).toBeGreaterThan(500);
  expect(audit.droppedLines).toBeLessThan(1_000);
});
