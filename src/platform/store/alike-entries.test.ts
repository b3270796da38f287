import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createAlikeEntries, entriesOf } from './alike-entries.ts';
import type { AuditRow } from './tables.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const row = (index: number, more: Partial<AuditRow> = {}): AuditRow => ({
  at: index,
  actor_kind: 'user',
  actor_name: 'eve',
  session_id: null,
  token_id: null,
  address: null,
  action: 'token.create',
  target_kind: 'token',
  target_name: 'eve',
  target_part: `t${index}`,
  result: 'done',
  detail: '{}',
  instance: null,
  users: null,
  user_count: 1,
  ...more,
});

test('passes on few entries alike at once, and of more one with all of them, a minute later', () => {
  const written: AuditRow[] = [];
  const entries = createAlikeEntries((each) => written.push(each));
  for (let index = 0; index < 25; index += 1) entries.add(row(index));
  entries.add(row(25, { actor_name: 'ada' }));
  entries.add(row(26, { users: '["a","b"]', user_count: 2 }));
  expect(written).toHaveLength(12);
  vi.advanceTimersByTime(60_000);
  expect(written).toHaveLength(13);
  expect(written[12]).toMatchObject({ at: 24, target_part: 't24', entry_count: 15 });
  expect(entriesOf(written[12] as AuditRow).map(({ target_part }) => target_part)).toEqual(
    Array.from({ length: 15 }, (_, index) => `t${index + 10}`),
  );
  for (let index = 0; index < 10; index += 1) entries.add(row(index));
  expect(written).toHaveLength(23);
});

test('holds no more than so many, and none at its end', () => {
  const written: AuditRow[] = [];
  const entries = createAlikeEntries((each) => written.push(each));
  for (let index = 0; index < 20_000; index += 1) entries.add(row(index));
  const count = () => written.reduce((sum, { entry_count = 1 }) => sum + entry_count, 0);
  expect(count()).toBeGreaterThan(14_000);
  expect(written.length).toBeLessThan(100);
  entries[Symbol.dispose]();
  expect(count()).toBe(20_000);
});
