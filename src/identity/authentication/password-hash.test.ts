import { execFileSync } from 'node:child_process';
import { scryptSync } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { pathOf, requires } from '../../../test/support/requires.ts';
import { createPasswordHasher, defaultArgon2Cost, isPasswordHash } from './password-hash.ts';

const cheap = { memoryKib: 64, passes: 1, parallelism: 1 };

test('a hash is Argon2id in PHC format with the recommended cost and a fresh salt', async () => {
  const hasher = createPasswordHasher();
  const first = await hasher.hash('correct horse battery');
  const second = await hasher.hash('correct horse battery');
  expect(first).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
  expect(second).not.toBe(first);
  expect(await hasher.verify('correct horse battery', first)).toEqual({
    matches: true,
    needsRehash: false,
  });
  expect((await hasher.verify('correct horse batterz', first)).matches).toBe(false);
});

test('a hash made by another implementation of Argon2id is understood', async () => {
  // From the reference implementation's own test list: password "password", salt "somesalt".
  const foreign =
    '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc';
  expect(await createPasswordHasher().verify('password', foreign)).toEqual({
    matches: true,
    needsRehash: true,
  });
});

test('a hash of another cost asks for a new one, but only when the password is right', async () => {
  const stored = await createPasswordHasher(cheap).hash('secret secret');
  const today = createPasswordHasher({ ...cheap, passes: 2 });
  expect(await today.verify('secret secret', stored)).toEqual({ matches: true, needsRehash: true });
  expect(await today.verify('wrong', stored)).toEqual({ matches: false, needsRehash: false });
});

test('scrypt hashes are still read, and replaced at the next login', async () => {
  const salt = Buffer.from('0123456789abcdef');
  const tag = scryptSync('old password', salt, 32, { N: 2 ** 10, r: 8, p: 1 });
  const text = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '');
  const stored = `$scrypt$ln=10,r=8,p=1$${text(salt)}$${text(tag)}`;
  const hasher = createPasswordHasher(cheap);
  expect(await hasher.verify('old password', stored)).toEqual({ matches: true, needsRehash: true });
  expect((await hasher.verify('new password', stored)).matches).toBe(false);
});

test('bcrypt hashes of other programs are read, and replaced at the next login', async () => {
  // Made by Python's bcrypt 3.2.2.
  const foreign = {
    'correct horse battery': '$2b$04$f9xDMPcpXAW.ovPp7pAs/eFJQwJsP5fAHqML6mI/uABJjix7ZIW5q',
    Zürich: '$2a$04$kX/GxCTPssbv5PrDqqYUVu2e2j89TunNu2Ku49CWejY3Ks8LWo5cO',
    ['x'.repeat(100)]: '$2b$04$Ww90zGD27iJekrJq4irMQuh77SqLAi1ymWS7mD49orDZ6j2muzMV.',
  };
  const hasher = createPasswordHasher(cheap);
  for (const [password, stored] of Object.entries(foreign)) {
    const found = await hasher.verify(password, stored);
    expect(found).toEqual({ matches: true, needsRehash: true });
    expect((await hasher.verify(`y${password}`, stored)).matches).toBe(false);
  }
});

test('without a hash nothing matches, not even after the same work', async () => {
  const hasher = createPasswordHasher(cheap);
  expect(await hasher.verify('', undefined)).toEqual({ matches: false, needsRehash: false });
  expect(await hasher.verify('anything', undefined)).toEqual({
    matches: false,
    needsRehash: false,
  });
});

test('composed and decomposed letters are the same password', async () => {
  const hasher = createPasswordHasher(cheap);
  const stored = await hasher.hash('Zürich am See');
  expect((await hasher.verify('Zu\u0308rich am See', stored)).matches).toBe(true);
});

test.for([
  '',
  'plain text',
  '$argon2id$v=19$m=4,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMa',
  '$argon2i$v=19$m=64,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMa',
  '$argon2id$v=19$m=64,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMa',
  '$scrypt$ln=30,r=8,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJH',
])('%j is no hash and matches nothing', async (text) => {
  expect(isPasswordHash(text)).toBe(false);
  const result = await createPasswordHasher(cheap).verify('x', text);
  expect(result).toEqual({ matches: false, needsRehash: false });
});

test('the default cost is that of the OWASP recommendation', () => {
  expect(defaultArgon2Cost).toEqual({ memoryKib: 19_456, passes: 2, parallelism: 1 });
});

test('names are looked up and files read while many passwords are compared', async () => {
  const hasher = createPasswordHasher();
  let compared = 0;
  const all = Array.from({ length: 24 }, async () => {
    await hasher.verify('x', undefined);
    compared += 1;
  });
  // The first has begun when the first is done.
  await Promise.race(all);
  await Promise.all([lookup('localhost'), readFile(import.meta.filename)]);
  expect(compared).toBeLessThan(12);
  await Promise.all(all);
});

test('more passwords than threads are each compared with the hash of their own', async () => {
  const hasher = createPasswordHasher(cheap);
  const texts = Array.from({ length: 50 }, (_, index) => `password ${index}`);
  const hashes = await Promise.all(texts.map((text) => hasher.hash(text)));
  const results = await Promise.all(texts.map((text, index) => hasher.verify(text, hashes[index])));
  expect(results.filter(({ matches }) => !matches)).toEqual([]);
});

test.skipIf(!requires('root', 'setpriv'))(
  'a hub that runs at a low priority and may not raise it hashes',
  () => {
    const script = `const { createPasswordHasher } = await import(${JSON.stringify(import.meta.resolve('./password-hash.ts'))});
    console.log(await createPasswordHasher(${JSON.stringify(cheap)}).hash('a password'));`;
    const command = ['nice', '-n', '10', process.execPath, '--input-type=module', '--eval', script];
    const output = execFileSync(pathOf('setpriv'), ['--bounding-set=-sys_nice', ...command], {
      encoding: 'utf8',
    });
    expect(output).toMatch(/^\$argon2id\$/);
  },
);
