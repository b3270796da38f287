import { expect, test } from 'vitest';
import { createProgressLog } from './progress-log.ts';
import type { ServerProgress } from './server.ts';

const never = new AbortController().signal;

async function collect(events: AsyncIterable<ServerProgress>): Promise<string[]> {
  const messages: string[] = [];
  for await (const { message } of events) messages.push(String(message));
  return messages;
}

test('a late listener hears everything, and the end', async () => {
  const log = createProgressLog();
  log.add({ progress: 0, message: 'one' });
  const early = collect(log.follow(never));
  log.add({ progress: 50, message: 'two' });
  const late = collect(log.follow(never));
  await Promise.resolve();
  log.add({ progress: 100, message: 'three', ready: true });
  log.end();
  log.add({ progress: 100, message: 'after the end' });
  expect(await early).toEqual(['one', 'two', 'three']);
  expect(await late).toEqual(['one', 'two', 'three']);
  expect(await collect(log.follow(never))).toEqual(['one', 'two', 'three']);
});

test('a listener that goes away is forgotten', async () => {
  const log = createProgressLog();
  const gone = new AbortController();
  const following = collect(log.follow(gone.signal));
  gone.abort();
  expect(await following).toEqual([]);
  expect(await collect(log.follow(AbortSignal.abort()))).toEqual([]);
});

test('a chatty spawner does not fill the memory, and its end is still heard', async () => {
  const log = createProgressLog();
  for (let step = 0; step < 1_000; step += 1) log.add({ progress: 1, message: `step ${step}` });
  const following = log.follow(never)[Symbol.asyncIterator]();
  expect(await following.next()).toMatchObject({ value: { message: 'step 900' } });
  expect(log.events.at(-1)?.message).toBe('step 999');
  log.add({ progress: 100, message: 'failed', failed: true });
  log.end();
  expect(log.events).toHaveLength(100);
  expect((await collect(log.follow(never))).at(-1)).toBe('failed');
});
