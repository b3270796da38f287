import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createJobOutput } from './job-output.ts';

test('read twice at once, tells each line once and opens the file once', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hub-job-output-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'output');
  writeFileSync(file, 'one\ntwo with s3cret\n');
  const output = createJobOutput({ file, userId: undefined, secrets: ['s3cret'] });
  const openCount = () =>
    readdirSync('/proc/self/fd').filter((fd) => targetOf(`/proc/self/fd/${fd}`) === file).length;

  const reported = await Promise.all([output.readNew(), output.readNew()]);
  expect(reported.flat()).toEqual(['one', 'two with [secret]']);
  expect(openCount()).toBe(1);
  await output[Symbol.asyncDispose]();
  expect(openCount()).toBe(0);
});

function targetOf(link: string): string | undefined {
  try {
    return readlinkSync(link);
  } catch {
    return undefined;
  }
}
