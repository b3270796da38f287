import { expect, test } from 'vitest';
import { type ChangeSubject, parseChangeSubject, tokensRevoked } from './change-subject.ts';

const subjects: ChangeSubject[] = [
  { kind: 'user_added' },
  { kind: 'session_ended', sessionId: 'a' },
  { kind: 'tokens_revoked', tokenIds: ['a', 'b'] },
  { kind: 'server_changed', serverId: 'a' },
  { kind: 'instances_changed' },
  { kind: 'services_changed' },
];
test.each(subjects)('%o arrives as it was sent', (subject) => {
  expect(parseChangeSubject(JSON.parse(JSON.stringify(subject)))).toEqual(subject);
});

test.each([
  undefined,
  null,
  'session_ended',
  [],
  {},
  { kind: 'role_lost' },
  { kind: 'session_ended' },
  { kind: 'session_ended', sessionId: 1 },
  { kind: 'tokens_revoked' },
  { kind: 'server_changed' },
  { kind: 'tokens_revoked', tokenIds: 'a' },
  { kind: 'tokens_revoked', tokenIds: ['a', 1] },
])('%o may concern anybody', (value) => {
  expect(parseChangeSubject(value)).toBeUndefined();
});

test('the revocation of very many tokens may concern anybody', () => {
  expect(tokensRevoked(['a'])).toEqual({ kind: 'tokens_revoked', tokenIds: ['a'] });
  expect(tokensRevoked(Array(101).fill('a'))).toBeUndefined();
});
