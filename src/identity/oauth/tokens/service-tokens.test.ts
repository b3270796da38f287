import { expect, test } from 'vitest';
import { hashSecret } from '../../../platform/crypto/hash.ts';
import { createServiceTokens } from './token-verifier.ts';

test('knows a service by its token until the token is replaced or deleted', () => {
  const tokens = createServiceTokens();
  tokens.set('wiki', 'first');
  expect(tokens.findService(hashSecret('first'))).toBe('wiki');
  tokens.set('wiki', 'second');
  expect(tokens.findService(hashSecret('first'))).toBeUndefined();
  expect(tokens.findService(hashSecret('second'))).toBe('wiki');
  tokens.delete('wiki');
  expect(tokens.findService(hashSecret('second'))).toBeUndefined();
});
