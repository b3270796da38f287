import { userInfo } from 'node:os';
import { expect, test } from 'vitest';
import { createLeftOverJobs } from './left-over-jobs.ts';

const own = userInfo().username;
const hub = 'hub:this-hub:';

function setUp(options: { active?: readonly string[]; known?: readonly string[] } = {}) {
  const jobs: { id: string; account: string; comment: string }[] = [];
  const ended: (string | undefined)[][] = [];
  let listings = 0;
  const leftOver = createLeftOverJobs({
    commands: {
      async listCommented() {
        listings += 1;
        return [...jobs];
      },
    },
    hubTag: 'this-hub',
    activeServers: async (ids) => new Set(ids.filter((id) => options.active?.includes(id))),
    isKnown: (jobId) => options.known?.includes(jobId) === true,
    end: async ({ jobId, account }) => {
      ended.push([jobId, account]);
      jobs.splice(
        jobs.findIndex(({ id }) => id === jobId),
        1,
      );
    },
    log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
  });
  return { jobs, ended, listings: () => listings, ...leftOver };
}

test('jobs that no active server has are ended under their accounts, and no others', async () => {
  const { jobs, ended, sweep } = setUp({ active: ['b', 'c', 'd'], known: ['3', '7'] });
  jobs.push(
    { id: '1', account: 'ann', comment: `${hub}a` },
    { id: '2', account: own, comment: `${hub}b` },
    { id: '3', account: own, comment: `${hub}c` },
    // Submitted by a hub that was killed, after the server was started again.
    { id: '4', account: own, comment: `${hub}c` },
    { id: '5', account: own, comment: 'hub:other-hub:a' },
    { id: '6', account: own, comment: 'a job of their own' },
    // Ann wrote the comment of a server that is not hers, whose job another instance of the hub knows.
    { id: '7', account: 'ann', comment: `${hub}d` },
    { id: '8', account: own, comment: `${hub}d` },
  );
  await sweep();
  expect(ended).toEqual([
    ['1', 'ann'],
    ['4', undefined],
  ]);
});

test('those of a server are ended before it is started, asked for once by starts that come together', async () => {
  const { jobs, ended, endAllOf, listings } = setUp();
  jobs.push(
    { id: '1', account: own, comment: `${hub}a` },
    { id: '2', account: 'ann', comment: `${hub}a` },
    { id: '3', account: own, comment: `${hub}b` },
    { id: '4', account: own, comment: `${hub}c` },
  );
  await Promise.all(['a', 'b', 'd'].map((serverId) => endAllOf(serverId, { graceMs: 0 })));
  expect(ended.map(([jobId]) => jobId).toSorted()).toEqual(['1', '2', '3']);
  expect(listings()).toBe(1);
});
