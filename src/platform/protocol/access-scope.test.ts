import { expect, test } from 'vitest';
import { accessScopeFor, accessScopesFor } from './client-id.ts';

test('accessScopeFor names the scope of a service, a default and a named server', () => {
  expect(accessScopeFor({ kind: 'service', name: 'wiki' })).toBe('access:services!service=wiki');
  expect(accessScopeFor({ kind: 'server', userName: 'u', serverName: '' })).toBe(
    'access:servers!server=u/',
  );
  expect(accessScopeFor({ kind: 'server', userName: 'u', serverName: 'gpu' })).toBe(
    'access:servers!server=u/gpu',
  );
});

test('accessScopesFor lists the wider ones too', () => {
  expect(accessScopesFor({ kind: 'service', name: 'wiki' })).toEqual([
    'access:services',
    'access:services!service=wiki',
  ]);
  expect(accessScopesFor({ kind: 'server', userName: 'u', serverName: '' })).toEqual([
    'access:servers!server=u/',
    'access:servers!user=u',
    'access:servers',
  ]);
});
