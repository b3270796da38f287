import { describe, expect, test } from 'vitest';
import { HubError } from '../../platform/errors.ts';
import {
  createOutputFeed,
  followOutput,
  type OutputEvent,
  type OutputSource,
} from './output-feed.ts';

describe('the last lines of output', () => {
  test('are read on from where one was', async () => {
    const feed = createOutputFeed();
    feed.push('one');
    feed.push('two');
    const first = await feed.read(undefined, 1);
    expect(first).toMatchObject({ lines: ['two'], skipped: 0, isContinued: false });
    feed.push('three');
    expect(await feed.read(first.position)).toMatchObject({
      lines: ['three'],
      skipped: 0,
      isContinued: true,
    });
  });

  test('are bounded in number and in length, and say how many were skipped', async () => {
    const feed = createOutputFeed({ maxLines: 3 });
    const { position } = await feed.read();
    for (const line of ['1', '2', '3', '4', '5']) feed.push(line);
    expect(await feed.read(position)).toMatchObject({ lines: ['3', '4', '5'], skipped: 2 });

    const long = createOutputFeed();
    for (let index = 0; index < 500; index += 1) long.push('x'.repeat(4_096));
    const kept = long.tail().reduce((sum, line) => sum + line.length, 0);
    expect(kept).toBeLessThanOrEqual(256 * 1024);
    expect(kept).toBeGreaterThan(200 * 1024);
    expect(long.tail(50, 8_192)).toHaveLength(2);
    expect(feed.tail(2)).toEqual(['4', '5']);
    expect(feed.tail(0)).toEqual([]);
    expect(feed.tail(5, 2)).toEqual(['4', '5']);
  });

  test('are left out when they came earlier than asked for', async () => {
    let time = 100_000;
    const feed = createOutputFeed({ maxLines: 3, now: () => time });
    feed.push('given up');
    feed.push('from before', 90_000);
    feed.push('old');
    time += 60_000;
    feed.push('new');
    expect((await feed.read()).lines).toEqual(['from before', 'old', 'new']);
    expect((await feed.read(undefined, undefined, 60)).lines).toEqual(['old', 'new']);
    expect((await feed.read(undefined, 1, 60)).lines).toEqual(['new']);
    const { position } = await feed.read(undefined, undefined, 59);
    time += 60_000;
    expect((await feed.read(undefined, undefined, 59)).lines).toEqual([]);
    feed.push('newest');
    expect((await feed.read(position)).lines).toEqual(['newest']);
  });

  test('begin again with another program', async () => {
    const feed = createOutputFeed();
    feed.push('of the first');
    const { position } = await feed.read();
    feed.restart();
    feed.push('of the second');
    expect(await feed.read(position)).toMatchObject({
      lines: ['of the second'],
      skipped: 0,
      isContinued: false,
    });
  });
});

describe('a follower', () => {
  async function follow(source: OutputSource, lines?: number) {
    const stop = new AbortController();
    const events = followOutput(source, { signal: stop.signal, lines });
    const next = async () => (await events.next()).value as OutputEvent;
    return { next, end: () => stop.abort(), rest: () => events.next() };
  }

  test('gets the last lines, then those that come, then a new run of them', async () => {
    const feed = createOutputFeed();
    for (const line of ['1', '2', '3']) feed.push(line);
    const { next } = await follow(feed, 2);
    expect(await next()).toEqual({ lines: ['2', '3'] });
    feed.push('4');
    expect(await next()).toEqual({ lines: ['4'] });
    feed.restart();
    feed.push('new');
    expect(await next()).toEqual({ lines: ['new'], restarted: true });
  });

  test('that reads slowly is told how much it missed', async () => {
    const feed = createOutputFeed({ maxLines: 2 });
    const { next } = await follow(feed);
    expect(await next()).toEqual({ lines: [] });
    for (const line of ['1', '2', '3', '4', '5']) feed.push(line);
    expect(await next()).toEqual({ lines: ['4', '5'], skipped: 3 });
  });

  test('hears once that nothing can be read, and goes on when it can', async () => {
    const feed = createOutputFeed();
    let isAway = true;
    const { next } = await follow({
      ...feed,
      async read(...from) {
        if (isAway) throw new HubError('unavailable', 'It does not answer.');
        return feed.read(...from);
      },
    });
    expect(await next()).toEqual({ lines: [], problem: 'It does not answer.' });
    isAway = false;
    feed.push('there');
    expect(await next()).toEqual({ lines: ['there'] });
  });

  test('ends with its signal, also while nothing is written', async () => {
    const { next, end, rest } = await follow(createOutputFeed());
    await next();
    const last = rest();
    end();
    expect(await last).toEqual({ value: undefined, done: true });
  });
});
