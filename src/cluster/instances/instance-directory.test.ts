import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { endLease, enterInstance } from '../../../test/support/instances.ts';
import { openInstanceDirectory } from './instance-directory.ts';
import { createInstanceStore } from './instance-store.ts';

describeEachDatabase('the directory of instances', (open) => {
  test('says once in the log that the lease of an instance elsewhere has ended', async () => {
    const database = await open();
    const lines: string[] = [];
    await enterInstance(database, { id: 'here', machineId: 'here' });
    await enterInstance(database, { id: 'far', machineId: 'elsewhere' });
    await using directory = await openInstanceDirectory({
      store: createInstanceStore(database),
      database,
      isShared: false,
      here: { id: 'here', machineId: 'here' },
      log: pino({}, { write: (line: string) => lines.push(line) }),
    });
    await directory.refresh();
    expect(lines).toEqual([]);
    await endLease(database, 'far');
    await directory.refresh();
    await directory.refresh();
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      {
        level: 40,
        instance: 'name of far',
        host: 'host',
        leaseUntil: '2026-01-02T03:04:05.000Z',
        msg: 'instance lease expired',
      },
    ]);
    expect(directory.find('far')?.isLive).toBe(false);
  });
});
