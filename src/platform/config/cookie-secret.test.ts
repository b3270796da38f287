import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { ConfigError } from '../errors.ts';
import { cookieSecretProblem, loadCookieSecrets } from './cookie-secret.ts';
import { Secret } from './secret.ts';

const root = mkdtempSync(join(tmpdir(), 'hub-cookie-secret-'));
afterAll(() => rmSync(root, { recursive: true }));

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(root, 'case-'));
  file = join(directory, 'hub_cookie_secret');
});

test('a key is made once, readable by its owner only, and found again', async () => {
  const [first] = await loadCookieSecrets({ configured: undefined, file });
  const [second] = await loadCookieSecrets({ configured: undefined, file });
  expect(first?.reveal()).toMatch(/^[0-9a-f]{64}$/);
  expect(second?.reveal()).toBe(first?.reveal());
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(readdirSync(directory)).toEqual(['hub_cookie_secret']);
});

test('hubs that start at the same moment agree on one key', async () => {
  const loaded = await Promise.all(
    Array.from({ length: 20 }, () => loadCookieSecrets({ configured: undefined, file })),
  );
  expect(new Set(loaded.map(([key]) => key?.reveal())).size).toBe(1);
  expect(readdirSync(directory)).toEqual(['hub_cookie_secret']);
});

test('a key that others can read is refused, with the command that mends it', async () => {
  await loadCookieSecrets({ configured: undefined, file });
  for (const mode of [0o640, 0o604, 0o660]) {
    chmodSync(file, mode);
    const loading = loadCookieSecrets({ configured: undefined, file });
    await expect(loading).rejects.toThrow(`chmod 600 ${file}`);
  }
});

test('a file without a usable key is refused and left as it is', async () => {
  writeFileSync(file, 'short', { mode: 0o600 });
  const loading = loadCookieSecrets({ configured: undefined, file });
  await expect(loading).rejects.toBeInstanceOf(ConfigError);
  expect(readFileSync(file, 'utf8')).toBe('short');
});

test('a folder that is not there is named', async () => {
  const missing = join(directory, 'none', 'key');
  const loading = loadCookieSecrets({ configured: undefined, file: missing });
  await expect(loading).rejects.toThrow(/cannot be made: there is no such file.*Hub.cookie_secret/);
});

test('configured keys leave the file alone', async () => {
  const configured = [new Secret('new'), new Secret('old')];
  expect(await loadCookieSecrets({ configured, file })).toBe(configured);
  expect(readdirSync(directory)).toEqual([]);
});

test.for([
  ['64 hexadecimal digits', '2b7e151628aed2a6abf7158809cf4f3c762e7160f38b4da56a784d9045190cfe'],
  ['32 bytes in base64', 'K34VFiiu0qar9xWICc9PPHYucWDzi02mh48sIHI7Wxk='],
  ['32 bytes in base64url', 'K34VFiiu0qar9xWICc9PPHYucWDzi02mh48sIHI7Wxk'],
])('%s are a strong key', ([, key = '']) => {
  expect(cookieSecretProblem(key)).toBeUndefined();
});

test.for([
  ['31 hexadecimal digits', '2b7e151628aed2a6abf7158809cf4f3'],
  ['16 bytes in base64', 'K34VFiiu0qar9xWICc9PPA=='],
  ['one character many times', '!'.repeat(100)],
  ['a word', 'secret'],
])('%s are too weak', ([, key = '']) => {
  expect(cookieSecretProblem(key)).toContain('openssl rand -hex 32');
});
