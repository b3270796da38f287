import { expect, test } from 'vitest';
import { readFigures } from './job-figures.ts';

test.for([
  ['7.batch|00:00:05|126054400', { cpuSeconds: 5, memoryBytes: 126_054_400 }],
  ['7.batch|25:02.500|1.50M', { cpuSeconds: 1502.5, memoryBytes: 1_572_864 }],
  ['7.batch|3-02:00:01|1372K|', { cpuSeconds: 266_401, memoryBytes: 1_404_928 }],
] as const)('%s is read', ([line, figures]) => {
  expect(readFigures(`${line}\n`)).toEqual([{ jobId: '7', ...figures }]);
});

test.for([
  ['no output', ''],
  ['a heading', 'JobID|AveCPU|AveRSS'],
  ['a step of the user', '7.0|00:00:05|100'],
  ['an extern step', '7.extern|00:00:05|100'],
  ['a step that Slurm does not measure', '7.batch|213503982334-14:25:51|'],
  ['no figures', '7.batch||'],
  ['a missing field', '7.batch|00:00:05'],
  ['a negative time', '7.batch|-00:00:05|100'],
  ['words', '7.batch|UNLIMITED|100'],
  ['an unknown unit', '7.batch|00:00:05|100X'],
] as const)('%s is left out', ([, line]) => {
  expect(readFigures(`${line}\n8.batch|00:00:01|1024\n`)).toEqual([
    { jobId: '8', cpuSeconds: 1, memoryBytes: 1024 },
  ]);
});
