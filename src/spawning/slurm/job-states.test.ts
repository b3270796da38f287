import { expect, test } from 'vitest';
import { describeDuration, describeEnd, describeWait, type Job, phaseOf } from './job-states.ts';

const job: Job = {
  id: '7',
  state: 'RUNNING',
  reason: 'None',
  node: 'n1',
  partition: 'short',
  timeLimit: '2:00:00',
  startTime: undefined,
};

test.for([
  ['PENDING', 'waiting'],
  ['RUNNING', 'running'],
  ['COMPLETING', 'running'],
  ['SUSPENDED', 'running'],
  ['TIMEOUT', 'ended'],
  ['NODE_FAIL', 'ended'],
  ['REVOKED', 'ended'],
  ['A_STATE_OF_A_LATER_SLURM', 'running'],
] as const)('a job that is %s is %s', ([state, phase]) => {
  expect(phaseOf({ state })).toEqual(phase);
});

test.for([
  ['TIMEOUT', 'None', 'the job reached its time limit of 2 hours'],
  ['OUT_OF_MEMORY', 'OutOfMemory', 'the job needed more memory than it had asked for'],
  ['NODE_FAIL', 'None', 'the node n1 of the job failed'],
  ['CANCELLED', 'None', 'the job was cancelled in Slurm'],
  ['FAILED', 'NonZeroExitCode', 'its program ended with an error'],
  [
    'FAILED',
    'JobHeldAdmin',
    'Slurm ended the job: an operator of the cluster holds it back (JobHeldAdmin)',
  ],
] as const)('the end by %s (%s) is explained', ([state, reason, words]) => {
  expect(describeEnd({ ...job, state, reason })).toEqual(words);
});

test.for([
  ['1-02:30:00', '1 day 2 hours 30 minutes'],
  ['7:00', '7 minutes'],
  ['UNLIMITED', 'UNLIMITED'],
] as const)('the time limit %s reads %s', ([limit, words]) => {
  expect(describeDuration(limit)).toEqual(words);
});

test('a job that waits is told its place, the reason and the expected start', () => {
  const waiting = { ...job, reason: 'Resources', startTime: '2030-01-02T03:04:05' };
  expect(describeWait(waiting, ['5', '6', '7', '8'])).toEqual(
    'Waiting in the queue of the partition short, 3rd of 4: it waits for free resources (Resources). ' +
      'Slurm expects it to start at 2030-01-02 03:04:05.',
  );
  expect(describeWait(job, [])).toEqual('Waiting in the queue of the partition short.');
});
