import { pid, ppid } from 'node:process';
import { describe, expect, test } from 'vitest';
import { collectTrees, listProcesses, type ProcessEntry } from './process-table.ts';

function entry(pid: number, parentPid: number, groupId: number, extra?: Partial<ProcessEntry>) {
  const base = { sessionId: groupId, isZombie: false, startTicks: '1' };
  return { pid, parentPid, groupId, ...base, ...extra };
}

describe('the process table', () => {
  test('lists this process with its parent', async () => {
    const found = (await listProcesses()).find((each) => each.pid === pid);
    expect(found?.parentPid).toBe(ppid);
    expect(found?.isZombie).toBe(false);
  });

  test('a tree holds descendants, the group, the session, and none of another tree', () => {
    const entries = [
      entry(10, 1, 10),
      entry(11, 10, 10),
      entry(12, 11, 12, { sessionId: 12 }),
      entry(13, 1, 10),
      entry(14, 1, 14, { sessionId: 10 }),
      entry(20, 1, 20),
      entry(21, 20, 20, { isZombie: true }),
    ];
    const trees = collectTrees(entries, [10, 20, 30]);
    expect(trees.get(10)?.toSorted()).toEqual([10, 11, 12, 13, 14]);
    expect(trees.get(20)).toEqual([20]);
    expect(trees.get(30)).toEqual([]);
  });

  test('a tree whose leader is gone still holds its group', () => {
    expect(collectTrees([entry(11, 1, 10)], [10]).get(10)).toEqual([11]);
  });
});
