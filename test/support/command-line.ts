import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, beforeEach } from 'vitest';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import { runCommand, type Terminal } from './run-command.ts';

/** Runs `hub` without a process of its own, each test in a folder with an empty configuration. */
export function useCommandLine() {
  const root = mkdtempSync(join(tmpdir(), 'hub-cli-'));
  afterAll(() => rmSync(root, { recursive: true }));

  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(root, 'case-'));
    writeConfig({});
  });

  function writeConfig(content: object): void {
    writeFileSync(join(directory, 'hub.config.json'), JSON.stringify(content));
  }

  const hub = (args: string, terminal?: Terminal) =>
    runCommand(directory, args.match(/"[^"]*"|\S+/g)?.map(unquote) ?? [], terminal);

  async function withDatabase<T>(work: (database: HubDatabase) => Promise<T>): Promise<T> {
    const log = pino({ level: 'silent' });
    await using database = await openDatabase('sqlite:hub.sqlite', { directory, log });
    return await work(database);
  }

  return { directory: () => directory, writeConfig, hub, withDatabase };
}

function unquote(text: string): string {
  return text.replaceAll('"', '');
}
