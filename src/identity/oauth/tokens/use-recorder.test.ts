import { pino } from 'pino';
import { expect, test } from 'vitest';
import { createUseRecorder } from './use-recorder.ts';

const log = pino({ level: 'silent' });

function create(recordUse: (times: ReadonlyMap<string, Date>) => Promise<void>) {
  let time = 0;
  const recorder = createUseRecorder({ accessTokens: { recordUse }, log, now: () => time });
  return {
    recorder,
    setTime(value: number) {
      time = value;
    },
  };
}

test('writes the last use of each token in one batch', async () => {
  const batches: Record<string, number>[] = [];
  const { recorder, setTime } = create(async (times) => {
    batches.push(Object.fromEntries([...times].map(([id, at]) => [id, at.getTime()])));
  });
  recorder.recordUse('a');
  recorder.recordUse('b');
  setTime(5);
  recorder.recordUse('a');
  await recorder.flush();
  await recorder.flush();
  expect(batches).toEqual([{ a: 5, b: 0 }]);
  await recorder[Symbol.asyncDispose]();
});

test('writes what is left when it is disposed of', async () => {
  const written: string[] = [];
  const { recorder } = create(async (times) => void written.push(...times.keys()));
  recorder.recordUse('a');
  await recorder[Symbol.asyncDispose]();
  expect(written).toEqual(['a']);
});

test('outlives a database that fails', async () => {
  let calls = 0;
  const { recorder } = create(async () => {
    calls += 1;
    throw new Error('disk full');
  });
  recorder.recordUse('a');
  await recorder.flush();
  await recorder[Symbol.asyncDispose]();
  expect(calls).toBe(1);
});
