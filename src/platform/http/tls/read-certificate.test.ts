import { expect, test } from 'vitest';
import { runInLinearTime } from '../../../../test/support/linear-time.ts';
import { readRevocationLists } from './read-certificate.ts';

/** The largest list that is read. */
const bytes = 8 * 1024 * 1024;
const begin = '-----BEGIN X509 CRL-----\n';

test.each([
  begin.repeat(bytes / begin.length),
  begin + '-'.repeat(bytes),
  begin + 'A'.repeat(bytes),
])('lists without an end, as a server for them could send, hold nothing up: %#', (text) => {
  const read = runInLinearTime(() => readRevocationLists(Buffer.from(text)));
  expect(read).toEqual({ problem: 'holds no revocation list in PEM or DER' });
});
