import { describe, expect, test } from 'vitest';
import { spawnerSection } from '../../platform/config/sections-schema.ts';
import { comingStop, createLimitRules } from './time-limits.ts';

const rules = (settings: object) => createLimitRules(spawnerSection.parse(settings));
const minute = 60_000;

describe('the limits of a server', () => {
  const { of, shortestMs, groupNames } = rules({
    idle_timeout_seconds: 3600,
    max_age_seconds: 86_400,
    profiles: [
      { name: 'gpu', idle_timeout_seconds: 600 },
      { name: 'long', max_age_seconds: 0 },
    ],
    limits_by_group: {
      staff: { idle_timeout_seconds: 7200, max_age_seconds: 0 },
      guests: { idle_timeout_seconds: 300 },
    },
  });
  const hours = (count: number) => count * 60 * minute;

  test.for([
    ['of all', undefined, [], hours(1), hours(24)],
    ['of the profile', 'gpu', [], 10 * minute, hours(24)],
    ['none, where the profile says 0', 'long', [], hours(1), undefined],
    ['of a profile that is gone, those of all', 'gone', [], hours(1), hours(24)],
    ['of the group rather than of the profile', 'gpu', ['guests'], 5 * minute, hours(24)],
    ['the longest of several groups', undefined, ['guests', 'staff'], hours(2), undefined],
    ['of all, for a group without limits', undefined, ['others'], hours(1), hours(24)],
  ] as const)('%s', ([, profile, groups, idleTimeoutMs, maxAgeMs]) => {
    expect(of(profile, groups)).toEqual({ idleTimeoutMs, maxAgeMs });
  });

  test('0 for a group is no limit, however long that of another group is', () => {
    const limits = rules({
      limits_by_group: { a: { idle_timeout_seconds: 0 }, b: { idle_timeout_seconds: 5 } },
    });
    expect(limits.of(undefined, ['a', 'b']).idleTimeoutMs).toBeUndefined();
    expect(limits.isAny).toBe(true);
  });

  test('which is the shortest, and which groups count', () => {
    expect(shortestMs).toBe(5 * minute);
    expect(groupNames).toEqual(['staff', 'guests']);
    expect(rules({}).isAny).toBe(false);
  });
});

describe('the coming stop', () => {
  const at = (minutes: number) => new Date(minutes * minute);
  const server = {
    state: 'running',
    startedAt: at(10),
    lastActivityAt: at(50),
    limits: {
      idleTimeoutMs: 60 * minute,
      maxAgeMs: undefined,
      idleFrom: undefined,
      ageFrom: undefined,
    },
  } as const;

  test('is as long after the last use as the idle timeout says', () => {
    expect(comingStop(server)).toEqual({ at: at(110), reason: 'idle_timeout' });
  });

  test('is that of the limit that comes first', () => {
    const limits = { ...server.limits, maxAgeMs: 30 * minute };
    expect(comingStop({ ...server, limits })).toEqual({ at: at(40), reason: 'max_age' });
  });

  test('is counted from the start where nothing is known of its use', () => {
    expect(comingStop({ ...server, lastActivityAt: undefined })?.at).toEqual(at(70));
  });

  test('is counted from later where that is stored', () => {
    const limits = { ...server.limits, idleFrom: at(70), maxAgeMs: 200 * minute, ageFrom: at(20) };
    expect(comingStop({ ...server, limits })).toEqual({ at: at(130), reason: 'idle_timeout' });
    const old = { ...limits, idleTimeoutMs: undefined };
    expect(comingStop({ ...server, limits: old })).toEqual({ at: at(220), reason: 'max_age' });
  });

  test('is none for a server that does not run, or without limits', () => {
    expect(comingStop({ ...server, state: 'starting' })).toBeUndefined();
    expect(comingStop({ ...server, limits: undefined })).toBeUndefined();
  });
});
