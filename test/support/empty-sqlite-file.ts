import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pino } from 'pino';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import { memoryFolder } from './memory-folder.ts';

let made: Promise<Buffer> | undefined;

/** An SQLite file that has the tables of the hub and no rows: to make them takes a fifth of the start of a hub. */
export function emptySqliteFile(): Promise<Buffer> {
  made ??= make();
  return made;
}

async function make(): Promise<Buffer> {
  const directory = await mkdtemp(join(memoryFolder(), 'hub-empty-'));
  try {
    const log = pino({ level: 'silent' });
    const database = await openDatabase('sqlite:hub.sqlite', { directory, log });
    await database[Symbol.asyncDispose]();
    return await readFile(join(directory, 'hub.sqlite'));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
