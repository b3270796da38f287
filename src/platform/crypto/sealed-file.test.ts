import { createReadStream } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Secret } from '../config/secret.ts';
import { isSealed, openSealed, sealFile } from './sealed-file.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sealed-'));
});
afterEach(async () => rm(folder, { recursive: true }));

const at = (name: string) => join(folder, name);
const right = new Secret('correct horse');

test.each([0, 70_000])('%d bytes come back by the passphrase, and by no other', async (size) => {
  const content = Buffer.alloc(size, 'a');
  await writeFile(at('plain'), content);
  await sealFile(createReadStream(at('plain')), at('sealed'), right);
  expect([await isSealed(at('plain')), await isSealed(at('sealed'))]).toEqual([false, true]);
  expect(((await stat(at('sealed'))).mode & 0o777).toString(8)).toBe('600');
  expect((await readFile(at('sealed'))).includes('aaaa')).toBe(false);
  await openSealed(at('sealed'), at('back'), right);
  expect((await readFile(at('back'))).equals(content)).toBe(true);
  const wrong = openSealed(at('sealed'), at('no'), new Secret('wrong'));
  await expect(wrong).rejects.toThrow('the passphrase is not that of this backup');
  await expect(stat(at('no'))).rejects.toThrow('ENOENT');
});

test('a file that was changed or cut short gives nothing', async () => {
  await writeFile(at('plain'), 'content');
  await sealFile(createReadStream(at('plain')), at('sealed'), right);
  const sealed = await readFile(at('sealed'));
  const changed = Buffer.from(sealed);
  changed.writeUInt8(changed.readUInt8(45) ^ 1, 45);
  for (const bytes of [changed, sealed.subarray(0, 20)]) {
    await writeFile(at('sealed'), bytes);
    await expect(openSealed(at('sealed'), at('back'), right)).rejects.toThrow('damaged');
    await expect(stat(at('back'))).rejects.toThrow('ENOENT');
  }
});
