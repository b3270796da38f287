import { pino } from 'pino';
import { expect, test } from 'vitest';
import { actAs } from '../audit/actor.ts';
import { createAuditStore } from './audit-store.ts';
import { openDatabase } from './open-database.ts';

const log = pino({ level: 'silent' });
const refusal = { action: 'access', result: 'refused', detail: { code: 'forbidden' } } as const;

test('an attacker gets a few rows and a number, and hides no one else', async () => {
  await using database = await openDatabase('sqlite::memory:', { directory: '.', log });
  const audit = createAuditStore(database);
  const mallory = { kind: 'user', name: 'mallory', address: '192.0.2.66' } as const;
  for (let index = 0; index < 5_000; index += 1) {
    actAs(mallory, () => database.audit.recordBounded(refusal));
  }
  actAs({ kind: 'user', name: 'bob' }, () => database.audit.recordBounded(refusal));
  await database.audit.flush();
  const { entries } = await audit.list({ filter: {}, limit: 1_000 });
  expect(entries.filter(({ actor }) => actor.name === 'mallory')).toHaveLength(10);
  expect(entries.filter(({ actor }) => actor.name === 'bob')).toHaveLength(1);
  expect(entries.filter(({ action }) => action === 'audit.omit')).toMatchObject([
    {
      actor: { kind: 'hub' },
      target: { kind: 'user', name: 'mallory' },
      detail: { count: 4_990, action: 'access', address: '192.0.2.66' },
    },
  ]);
});

test('attackers at a million addresses fill neither the disk nor the memory, and hide no user', async () => {
  await using database = await openDatabase('sqlite::memory:', { directory: '.', log });
  for (let index = 0; index < 20_000; index += 1) {
    const address = `2001:db8::${index.toString(16)}`;
    actAs({ kind: 'anonymous', address }, () => database.audit.recordBounded(refusal));
  }
  actAs({ kind: 'user', name: 'bob' }, () => database.audit.recordBounded(refusal));
  await database.audit.flush();
  const store = createAuditStore(database);
  const { entries } = await store.list({ filter: {}, limit: 1_000 });
  expect(entries.length).toBeLessThan(250);
  expect(entries.filter(({ actor }) => actor.name === 'bob')).toHaveLength(1);
  const omissions = entries.filter(({ action }) => action === 'audit.omit');
  const each = await Promise.all(omissions.map(({ id }) => store.entriesOf(id)));
  const omitted = each.flat().reduce((sum, entry) => sum + Number(entry?.detail['count']), 0);
  const recorded = entries
    .filter(({ action }) => action === 'access')
    .reduce((sum, { count }) => sum + count, 0);
  expect(omitted + recorded).toBe(20_001);
});
