import { describe, expect, test } from 'vitest';
import { serviceSchema } from '../../platform/config/service-schema.ts';
import type { ProbeResult } from '../../spawning/processes/readiness-probe.ts';
import { watchHealth } from './health-watch.ts';
import { createService } from './service.ts';

const url = 'http://127.0.0.1:9000';
const ready: ProbeResult = { ready: true, status: 200, answeredInMs: 7 };
const slow: ProbeResult = { ready: false, problem: 'timeout', reason: 'slow' };
const refused: ProbeResult = { ready: false, problem: 'refused', reason: 'refused' };

/** Lets the watch see one answer after the other and tells what it made of them. */
async function watchedAnswers(command: string | undefined, answers: readonly ProbeResult[]) {
  const { api_token: _, ...config } = serviceSchema.parse({ name: 'a', url, command, timeout: 20 });
  const context = { apiToken: undefined, basePath: '/', directory: '/' };
  const service = { ...createService(config, context), url };
  const end = new AbortController();
  const events: string[] = [];
  const answered: number[] = [];
  const left = [...answers];
  let now = 0;
  await watchHealth({
    service,
    signal: end.signal,
    clock: {
      now: () => Date.now(),
      monotonicMs: () => now,
      async sleep(ms) {
        now += ms;
        if (left.length === 0) end.abort();
      },
    },
    async probe({ path }) {
      expect(path).toBe('/services/a/');
      return left.shift() ?? ready;
    },
    onReady: () => events.push('ready'),
    onAnswer: (answeredInMs) => answered.push(answeredInMs),
    onUnhealthy: (reason) => events.push(String(reason)),
  });
  return { events, answered, now };
}

describe('the watch over a web service', () => {
  test('tells how long each good answer took', async () => {
    const took = [12, 3, 40].map((answeredInMs) => ({ ...ready, answeredInMs }));
    const { answered } = await watchedAnswers(undefined, [took[0]!, slow, ...took.slice(1)]);
    expect(answered).toEqual([12, 3, 40]);
  });

  test('one slow answer, or two, are no illness', async () => {
    const { events } = await watchedAnswers('run', [ready, slow, slow, ready, slow, slow, ready]);
    expect(events).toEqual(['ready']);
  });

  test('the third in a row is, and the first good one ends it', async () => {
    const { events } = await watchedAnswers('run', [ready, slow, slow, slow, ready]);
    expect(events).toEqual(['ready', 'slow', 'ready']);
  });

  test('a port where no process listens is a failure at once', async () => {
    expect((await watchedAnswers('run', [ready, refused])).events).toEqual(['ready', 'refused']);
  });

  test('asks every ten seconds while all is well, every second while it is not', async () => {
    expect((await watchedAnswers('run', [ready, ready, ready])).now).toBe(30_000);
    expect((await watchedAnswers('run', [ready, refused, refused, refused])).now).toBe(13_000);
  });

  test('a managed service has its timeout to become ready; afterwards it still may', async () => {
    const { events } = await watchedAnswers('run', [...Array(40).fill(refused), ready]);
    expect(events[0]).toBe('not ready after 20 s: refused');
    expect(events.at(-1)).toBe('ready');
  });

  test('an external service is told as it is from the first answer', async () => {
    const { events } = await watchedAnswers(undefined, [refused, ready]);
    expect(events).toEqual(['refused', 'ready']);
  });
});
