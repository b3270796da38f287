import pino from 'pino';
import { expect, test } from 'vitest';
import {
  createChangeListeners,
  type LoggedChange,
  subjectsOf,
  tokensRevoked,
} from './change-subject.ts';

const revoked = (id: string): LoggedChange => ({ kind: 'token_revoked', subject: id });

test('logged changes tell what they concerned, each once and in order', () => {
  const logged: LoggedChange[] = [
    { kind: 'user_added', subject: null },
    revoked('a'),
    { kind: 'session_ended', subject: 'mine' },
    { kind: 'user_added', subject: null },
    revoked('b'),
    { kind: 'server_changed', subject: 'lab' },
    { kind: 'instances_changed', subject: null },
    { kind: 'services_changed', subject: null },
  ];
  expect(subjectsOf(logged)).toEqual([
    { kind: 'user_added' },
    { kind: 'session_ended', sessionId: 'mine' },
    { kind: 'server_changed', serverId: 'lab' },
    { kind: 'instances_changed' },
    { kind: 'services_changed' },
    { kind: 'tokens_revoked', tokenIds: ['a', 'b'] },
  ]);
});

test.each([
  { kind: 'any_right', subject: null },
  { kind: 'of a newer hub', subject: 'a' },
  { kind: 'session_ended', subject: null },
  { kind: 'server_changed', subject: null },
  { kind: 'token_revoked', subject: null },
])('%o may concern anybody', (change) => {
  expect(subjectsOf([change, change])).toEqual([{ kind: 'all' }]);
});

test('the revocation of very many tokens may concern any user', () => {
  expect(tokensRevoked(['a'])).toEqual({ kind: 'tokens_revoked', tokenIds: ['a'] });
  expect(tokensRevoked(Array(101).fill('a'))).toEqual({ kind: 'rights_changed' });
  const many = Array.from({ length: 101 }, (_, index) => revoked(String(index)));
  expect(subjectsOf([{ kind: 'rights_changed', subject: null }, ...many])).toEqual([
    { kind: 'rights_changed' },
  ]);
});

test('a listener is called for changes of the kinds it asked for alone', () => {
  const listeners = createChangeListeners({ log: pino({ level: 'silent' }) });
  const heard: string[] = [];
  listeners.add(({ kind }) => heard.push(kind), ['notices_changed', 'all']);
  const stop = listeners.add(({ kind }) => heard.push(`any: ${kind}`));
  listeners.callAll({ kind: 'rights_changed' });
  stop();
  listeners.callAll({ kind: 'notices_changed' });
  listeners.callAll({ kind: 'user_added' });
  listeners.callAll({ kind: 'all' });
  expect(heard).toEqual(['any: rights_changed', 'notices_changed', 'all']);
});
