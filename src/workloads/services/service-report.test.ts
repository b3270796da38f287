import { expect, test } from 'vitest';
import { type Phrase, savePhrase, text } from '../../platform/texts/text.ts';
import { readReport, writeReport } from './service-report.ts';
import type { ServiceStatus } from './service-status.ts';

const status: ServiceStatus = {
  name: 'gallery',
  kind: 'managed',
  state: 'restarting',
  isReady: false,
  since: new Date(1_700_000_000_000),
  pid: undefined,
  startedAt: undefined,
  uptimeMs: undefined,
  nextStartAt: undefined,
  restarts: 3,
  lastExit: undefined,
  lastError: undefined,
  usage: undefined,
};

test.for<readonly [Phrase | undefined]>([
  [text`nothing listens on ${'http://127.0.0.1:1/'}`],
  ['a plain sentence'],
  [undefined],
])('what is wrong with a service is reported for readers of each language: %s', ([lastError]) => {
  const report = readReport(writeReport({ ...status, lastError }));
  expect(report).toMatchObject({ state: 'restarting', restarts: 3, since: status.since });
  const saved = lastError === undefined ? undefined : savePhrase(lastError);
  expect(report?.lastError === undefined ? undefined : savePhrase(report.lastError)).toEqual(saved);
});

test('what another version wrote is no report', () => {
  expect(readReport('{"state":"new"}')).toBeUndefined();
  expect(readReport('no JSON')).toBeUndefined();
});
