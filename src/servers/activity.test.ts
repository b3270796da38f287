import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createActivityLog } from './activity.ts';

type Recorded = Record<string, number>;

function create(traffic: { serverId: string; userId: string; at: Date }[] = []) {
  const users: Recorded[] = [];
  const servers: Recorded[] = [];
  const record = (into: Recorded[]) => async (entries: ReadonlyMap<string, Date>) => {
    into.push(Object.fromEntries([...entries].map(([id, at]) => [id, at.getTime()])));
  };
  const log = createActivityLog({
    users: { recordActivity: record(users) },
    servers: { recordActivity: record(servers) },
    collectTraffic: () => traffic.splice(0),
    log: pino({ level: 'silent' }),
  });
  return { log, users, servers };
}

test('many notes are one write, of the latest time', async () => {
  await using parts = new AsyncDisposableStack();
  const { log, users, servers } = create();
  parts.use(log);
  for (const at of [5, 9, 7]) log.noteUser('ann', new Date(at));
  log.noteServer('s', new Date(3));
  await log.flush();
  await log.flush();
  expect(users).toEqual([{ ann: 9 }]);
  expect(servers).toEqual([{ s: 3 }]);
});

test('what the gateway saw counts for the server and its user', async () => {
  await using parts = new AsyncDisposableStack();
  const { log, users, servers } = create([{ serverId: 's', userId: 'ann', at: new Date(4) }]);
  parts.use(log);
  await log.flush();
  expect(users).toEqual([{ ann: 4 }]);
  expect(servers).toEqual([{ s: 4 }]);
});

test('nothing noted is lost at the end', async () => {
  const { log, users } = create();
  log.noteUser('ann', new Date(1));
  await log[Symbol.asyncDispose]();
  expect(users).toEqual([{ ann: 1 }]);
});
