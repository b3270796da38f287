import { createGuardrails, generateSync } from 'otplib';
import { describe, expect, test } from 'vitest';
import { newTotpSecret, timeStepOf, totpUri } from './totp.ts';

const epoch = 1_800_000_000;
const now = new Date(epoch * 1000);

describe('a code by time', () => {
  test('takes codes of the 80 bits that other programs make secrets of', () => {
    const secret = 'JBSWY3DPEHPK3PXP';
    const guardrails = createGuardrails({ MIN_SECRET_BYTES: 10 });
    const token = generateSync({ secret, epoch, guardrails });
    expect(timeStepOf(secret, token, now)).toBe(epoch / 30);
  });

  test('is that of RFC 6238, Appendix B', () => {
    // The secret of the RFC is the ASCII text 12345678901234567890.
    const secret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';
    expect(timeStepOf(secret, '287082', new Date(59_000))).toBe(1);
    expect(timeStepOf(secret, '081804', new Date(1_111_111_109_000))).toBe(37_037_036);
    expect(timeStepOf(secret, '005924', new Date(1_234_567_890_000))).toBe(41_152_263);
  });

  test.for([
    [-2, undefined],
    [-1, -1],
    [0, 0],
    [1, 1],
    [2, undefined],
  ] as const)('of the step %i from now belongs to %s', ([step, expected]) => {
    const secret = newTotpSecret();
    for (const second of [0, 1, 15, 29]) {
      const at = epoch + second;
      const code = generateSync({ secret, epoch: epoch + 30 * step });
      const found = timeStepOf(secret, code, new Date(at * 1000));
      expect(found).toBe(expected === undefined ? undefined : epoch / 30 + expected);
    }
  });

  test('may be typed with a gap', () => {
    const secret = newTotpSecret();
    const code = generateSync({ secret, epoch });
    expect(timeStepOf(secret, ` ${code.slice(0, 3)} ${code.slice(3)}`, now)).toBe(epoch / 30);
  });

  test.for(['', '12345', '1234567', 'abcdef', '１２３４５６', '1e5000', '-12345', '12345\u0000'])(
    '%j is none',
    (code) => {
      expect(timeStepOf(newTotpSecret(), code, now)).toBeUndefined();
    },
  );
});

test('a secret has 160 bits and is new each time', () => {
  const secrets = new Set(Array.from({ length: 50 }, newTotpSecret));
  expect(secrets.size).toBe(50);
  for (const secret of secrets) expect(secret).toMatch(/^[A-Z2-7]{32}$/);
});

test('the address for apps keeps issuer and account apart', () => {
  const uri = totpUri({ issuer: 'Hub: Lab', userName: 'a:b@c d', secret: 'GEZDGNBVGY3TQOJQ' });
  const url = new URL(uri);
  expect(decodeURIComponent(url.pathname)).toBe('/Hub  Lab:a b@c d');
  expect(url.searchParams.get('issuer')).toBe('Hub  Lab');
});
