import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { Client } from 'pg';
import type { Logger } from 'pino';
import { withinTime } from '../concurrency/time-limit.ts';
import { type ChangeListener, subjectsOf } from './change-subject.ts';
import type { ChangeFeed } from './database.ts';
import type { AnswerWatch } from './guarded-dialect.ts';
import {
  type LogPosition,
  purgeChangeLog,
  purgeIntervalMs,
  readChangeLog,
} from './postgres-change-log.ts';

const channel = 'hub_changed';
/** How often the log is read although nothing was heard. */
const readIntervalMs = 2_000;
/** The least time between two readings: many changes in a row cost one. */
const readSpacingMs = 50;
const answerLimitMs = 2_000;
/** How long it may take until a notification to oneself is heard. */
const silenceLimitMs = 4_000;
/** So many answered readings without their own notification count as deaf, if that lasts. */
const minSilentAnswers = 2;
const firstRetryMs = 100;
const maxRetryMs = 2_000;
/** Where notifications are never heard, a new connection every few seconds would not help. */
const maxSilenceLimitMs = 120_000;
const feedRestored = 'database change feed restored';

/** Hears from PostgreSQL what changed, by this process or another. */
export interface PostgresChangeFeed extends ChangeFeed, AsyncDisposable {
  /** See `HubDatabase`. */
  now(): number;
}

export interface PostgresChangeFeedOptions {
  /** Makes a client that is not yet connected. */
  readonly createClient: () => Client;
  readonly onChange: ChangeListener;
  /** After how long without news the feed counts as lost. */
  readonly maxStalenessMs: number;
  readonly answers: AnswerWatch;
  readonly log: Logger;
}

/**
 * Reads the log of changes every two seconds, and at once when a notification comes, over one connection of its own.
 * Each reading sends itself a notification: a connection that is not answered, or on which nothing is heard any more,
 * is replaced.
 */
export async function openPostgresChangeFeed({
  createClient,
  onChange,
  maxStalenessMs,
  answers,
  log,
}: PostgresChangeFeedOptions): Promise<PostgresChangeFeed> {
  const ownChannel = `hub_${randomUUID().replaceAll('-', '')}`;
  let client: Client | undefined;
  let isClosed = false;
  let lossCount = 0;
  let position: LogPosition | undefined;
  let clock = { databaseMs: Date.now(), readAtMs: performance.now() };
  let knownAtMs = performance.now();
  let lastEventAtMs = performance.now();
  let currentSilenceLimitMs = silenceLimitMs;
  /** Readings that were answered since then. */
  let silentAnswers = 0;
  let reading: Promise<void> | undefined;
  let isDue = false;
  let spacing: NodeJS.Timeout | undefined;
  let retryTimer: NodeJS.Timeout | undefined;
  let retryMs = firstRetryMs;
  let purgePosition: LogPosition | undefined;

  async function open(limit: <T>(answer: Promise<T>) => Promise<T>): Promise<void> {
    const opened = createClient();
    opened.on('error', () => lose(opened, 'the connection was closed'));
    opened.on('end', () => lose(opened, 'the connection was closed'));
    opened.on('notification', (notification) => receive(opened, notification.channel));
    try {
      await limit(opened.connect());
      await limit(opened.query(`listen ${channel}; listen ${ownChannel}`));
      await limit(read(opened));
    } catch (error) {
      await opened.end().catch(() => {});
      throw error;
    }
    if (isClosed) {
      await opened.end();
      return;
    }
    client = opened;
    lastEventAtMs = performance.now();
    silentAnswers = 0;
    retryMs = firstRetryMs;
  }

  function receive(listening: Client, receivedChannel: string): void {
    if (receivedChannel === ownChannel) {
      if (listening !== client) return;
      lastEventAtMs = performance.now();
      silentAnswers = 0;
      if (currentSilenceLimitMs > silenceLimitMs) log.info({}, feedRestored);
      currentSilenceLimitMs = silenceLimitMs;
    } else readSoon();
  }

  async function read(from: Client): Promise<void> {
    const sentAtMs = performance.now();
    const found = await readChangeLog(
      async (text, values) => await from.query(text, [...values]),
      position,
      { channel: ownChannel, payload: '' },
    );
    position = found.position;
    silentAnswers += 1;
    // Never more behind than the answer took.
    clock = { databaseMs: found.position.atMs, readAtMs: performance.now() };
    purgePosition ??= found.position;
    // Before the listeners: what they look up is from after these changes.
    knownAtMs = Math.max(knownAtMs, sentAtMs);
    if (found.isIncomplete) onChange({ kind: 'all' });
    for (const subject of subjectsOf(found.changes)) onChange(subject);
  }

  function readSoon(): void {
    isDue = true;
    if (reading !== undefined || spacing !== undefined || client === undefined) return;
    isDue = false;
    const from = client;
    const losing = (error: unknown) => lose(from, (error as Error).message);
    reading = inTime(read(from))
      .catch(losing)
      .finally(() => {
        reading = undefined;
        spacing = setTimeout(() => {
          spacing = undefined;
          if (isDue) readSoon();
        }, readSpacingMs);
        spacing.unref();
      });
  }

  function lose(lost: Client, reason: string): void {
    if (client !== lost) return;
    client = undefined;
    void lost.end().catch(() => {});
    if (isClosed) return;
    lossCount += 1;
    log.warn({ reason }, 'database change feed lost');
    retryLater();
  }

  function retryLater(): void {
    retryTimer = setTimeout(() => {
      open((answer) => inTime(answers.wait(answer))).then(
        () => {
          if (client !== undefined && currentSilenceLimitMs === silenceLimitMs)
            log.info({}, feedRestored);
        },
        () => {
          retryMs = Math.min(retryMs * 2, maxRetryMs);
          if (!isClosed) retryLater();
        },
      );
    }, retryMs);
    retryTimer.unref();
  }

  await open(answers.wait);
  const polling = setInterval(() => {
    if (client === undefined) return;
    // Time alone also passes while this process is held up.
    if (
      performance.now() - lastEventAtMs > currentSilenceLimitMs &&
      silentAnswers >= minSilentAnswers
    ) {
      currentSilenceLimitMs = Math.min(currentSilenceLimitMs * 2, maxSilenceLimitMs);
      lose(
        client,
        'no notification comes: is there a pooler in front that is not in session mode?',
      );
      return;
    }
    readSoon();
  }, readIntervalMs);
  polling.unref();
  const purging = setInterval(() => {
    if (client === undefined || purgePosition === undefined) return;
    const purger = client;
    const readAt = purgePosition;
    purgePosition = undefined;
    purgeChangeLog(async (text, values) => await purger.query(text, [...values]), readAt).catch(
      (error: unknown) => log.warn({ err: error }, 'could not remove old changes from their log'),
    );
  }, purgeIntervalMs);
  purging.unref();

  return {
    now: () => Math.round(clock.databaseMs + performance.now() - clock.readAtMs),
    knownAtMs: () => knownAtMs,
    isLost: () => performance.now() - knownAtMs > maxStalenessMs,
    get lossCount() {
      return lossCount;
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      for (const timer of [polling, purging, spacing, retryTimer]) clearTimeout(timer);
      const last = client;
      client = undefined;
      await last?.end().catch(() => {});
    },
  };
}

/** Settles as an answer does, or rejects when it takes too long. */
function inTime<T>(answer: Promise<T>): Promise<T> {
  return withinTime(answer, answerLimitMs, async (): Promise<never> => {
    // After what has come already, while this process was held up.
    await setImmediate();
    throw new Error(`no answer within ${answerLimitMs / 1000} seconds`);
  });
}
