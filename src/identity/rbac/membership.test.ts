import { expect, test } from 'vitest';
import { createMembership, emptyMembership } from './membership.ts';

test('answers in both directions', () => {
  const membership = createMembership(
    new Map([
      ['staff', new Set(['alice', 'bob'])],
      ['ops', new Set(['alice'])],
      ['empty', new Set<string>()],
    ]),
  );
  expect(membership.groupsOf('alice')).toEqual(new Set(['staff', 'ops']));
  expect(membership.groupsOf('bob')).toEqual(new Set(['staff']));
  expect(membership.groupsOf('carol')).toEqual(new Set());
  expect(membership.membersOf('staff')).toEqual(new Set(['alice', 'bob']));
  expect(membership.membersOf('unknown')).toEqual(new Set());
});

test('the empty membership has no groups and no members', () => {
  expect(emptyMembership.groupsOf('alice').size).toBe(0);
  expect(emptyMembership.membersOf('staff').size).toBe(0);
});
