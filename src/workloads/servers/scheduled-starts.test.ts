import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { createGroup } from '../../../test/support/create-group.ts';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { addServer } from '../../../test/support/server-rows.ts';
import { createGroupStore } from '../../identity/users/group-store.ts';
import { createUserStore } from '../../identity/users/user-store.ts';
import { startTimeSchema } from '../../platform/config/start-times-schema.ts';
import { HubError } from '../../platform/errors.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { createScheduledStarts, lastTime } from './scheduled-starts.ts';
import { createScheduledStartsStore } from './scheduled-starts-store.ts';

const minute = 60_000;
const nine = Date.parse('2026-11-30T09:00:00Z');

describe('the last time', () => {
  const at = (given: object, now: string) => {
    const time = startTimeSchema.parse({ groups: ['course'], ...given });
    const ms = lastTime(time, Date.parse(now));
    return ms === undefined ? undefined : new Date(ms).toISOString();
  };
  const berlin = { time: '02:30', time_zone: 'Europe/Berlin' };

  test.for([
    [
      'is on the days alone',
      { time: '09:00', days: ['mon'] },
      '2026-11-30T09:10:09Z',
      '2026-11-30T09:00:00.000Z',
    ],
    ['is not on another day', { time: '09:00', days: ['tue'] }, '2026-11-30T09:10:09Z', undefined],
    ['is not before it', { time: '09:00' }, '2026-11-30T08:59:59Z', undefined],
    [
      'is made up for within half an hour',
      { time: '09:00' },
      '2026-11-30T09:29:59Z',
      '2026-11-30T09:00:00.000Z',
    ],
    ['and not later', { time: '09:00' }, '2026-11-30T09:31:00Z', undefined],
    [
      'may be that of the day before',
      { time: '23:50', days: ['mon'] },
      '2026-12-01T00:10:00Z',
      '2026-11-30T23:50:00.000Z',
    ],
    [
      'is by the clock of the time zone',
      { time: '09:00', time_zone: 'Asia/Kolkata' },
      '2026-11-30T03:31:00Z',
      '2026-11-30T03:30:00.000Z',
    ],
    ['does not come where the clocks leave it out', berlin, '2026-03-29T01:05:00Z', undefined],
    [
      'comes twice where they are put back',
      berlin,
      '2026-10-25T00:31:00Z',
      '2026-10-25T00:30:00.000Z',
    ],
    ['the second time an hour later', berlin, '2026-10-25T01:31:00Z', '2026-10-25T01:30:00.000Z'],
  ] as const)('%s', ([, given, now, expected]) => {
    expect(at(given, now)).toBe(expected);
  });

  test.for([
    { time: '9:00' },
    { time: '24:00' },
    { time: '09:00', days: [] },
    { time: '09:00', time_zone: 'Mars/X' },
  ])('is refused: %j', (given) => {
    expect(startTimeSchema.safeParse({ groups: ['course'], ...given }).success).toBe(false);
  });
});

describeEachDatabase('servers that are started ahead', (open) => {
  async function createWorld(database: HubDatabase) {
    const users = createUserStore(database);
    const groups = createGroupStore(database);
    await createGroup(groups, { name: 'course' });
    await createGroup(groups, { name: 'other' });
    const started: string[] = [];
    const world = {
      nowMs: nine + 5 * minute,
      /** What comes of a start. */
      onStart: async (_name: string): Promise<void> => undefined,
      started,
      async add(
        name: string,
        group: string,
        server?: { state: string; starting_at?: number; stopped_at?: number },
      ) {
        const { id } = await users.create({ name });
        await groups.addMembers(group, [name], 'api');
        if (server === undefined) return;
        await addServer(database, id, server.state);
        await database.kysely
          .updateTable('servers')
          .set(server)
          .where('user_id', '=', id)
          .execute();
      },
      schedule: () =>
        createScheduledStarts({
          times: [startTimeSchema.parse({ groups: ['course'], time: '09:00', profile: 'small' })],
          store: createScheduledStartsStore(database),
          users,
          servers: {
            launchedName: '',
            async start({ user: { name }, userOptions, mayStartInMaintenance }) {
              expect([userOptions, mayStartInMaintenance]).toEqual([{ profile: 'small' }, false]);
              await world.onStart(name);
              started.push(name);
              return { ready: Promise.resolve() };
            },
          },
          log: pino({ level: 'silent' }),
          now: () => world.nowMs,
        }),
    };
    return world;
  }

  test('are those of the group that were neither started nor ended since the time, each once', async () => {
    const database = await open();
    const world = await createWorld(database);
    const before = nine - 1;
    await world.add('new', 'course');
    await world.add('resting', 'course', {
      state: 'stopped',
      starting_at: before,
      stopped_at: before,
    });
    await world.add('running', 'course', { state: 'running', starting_at: before });
    await world.add('ended', 'course', { state: 'stopped', starting_at: before, stopped_at: nine });
    await world.add('failed', 'course', { state: 'stopped', starting_at: nine });
    await world.add('away', 'course');
    await database.kysely
      .updateTable('users')
      .set({ suspended_at: 1 })
      .where('name', '=', 'away')
      .execute();
    await world.add('foreign', 'other');
    await using schedule = world.schedule();
    await schedule.run();
    await schedule.run();
    expect(world.started.toSorted()).toEqual(['new', 'resting']);
    world.nowMs = nine - minute;
    await using early = world.schedule();
    await early.run();
    expect(world.started).toHaveLength(2);
  });

  test('one that is refused keeps no other waiting, and is tried once; without room it is tried again', async () => {
    const world = await createWorld(await open());
    const names = Array.from({ length: 20 }, (_, index) => `user-${index}`);
    for (const name of names) await world.add(name, 'course');
    let tries = 0;
    world.onStart = async (name) => {
      if (name !== 'user-3') return;
      tries += 1;
      throw new HubError('bad_request', 'No such profile.');
    };
    await using schedule = world.schedule();
    await schedule.run();
    await schedule.run();
    expect([world.started.length, tries]).toEqual([19, 1]);

    await using full = world.schedule();
    world.started.length = 0;
    let room = 5;
    world.onStart = async () => {
      room -= 1;
      if (room < 0) throw new HubError('too_many_requests', 'Too many.');
    };
    await full.run();
    expect(world.started).toHaveLength(5);
    room = 100;
    await full.run();
    expect(new Set(world.started).size).toBe(20);
  });
});
