import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createManagedProcessStore } from './managed-process-store.ts';

describeEachDatabase('the store of managed processes', (open) => {
  test('remembers one process a service, the last one, until it is forgotten', async () => {
    const store = createManagedProcessStore(await open(), 'here');
    const at = new Date('2026-11-20T10:00:00Z');
    await store.record('a', { pid: 10, startTime: 'boot/1' }, at);
    await store.record('a', { pid: 11, startTime: 'boot/2' }, at);
    await store.record('b', { pid: 12, startTime: 'boot/3' }, at);
    await store.forget('b');
    expect(await store.list()).toEqual([
      { serviceName: 'a', identity: { pid: 11, startTime: 'boot/2' }, startedAt: at },
    ]);
  });
});
