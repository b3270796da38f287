import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import type { Logger } from 'pino';
import type { AnswerWatch } from './answer-watch.ts';
import type { ChangeListener } from './change-listeners.ts';
import { type ChangeSubject, parseChangeSubject } from './change-subject.ts';

const channel = 'hub_changed';
const firstRetryMs = 100;
const longestRetryMs = 10_000;

/** Tells other processes on the same PostgreSQL that something changed, and hears it from them. */
export interface PostgresChangeFeed extends AsyncDisposable {
  announce(subject?: ChangeSubject): void;
}

export interface PostgresChangeFeedOptions {
  /** Makes a client that is not yet connected. */
  readonly createClient: () => Client;
  /** Another process announced a change, or one may have been missed. */
  readonly onChange: ChangeListener;
  readonly answers: AnswerWatch;
  readonly log: Logger;
}

/** Opens a feed over LISTEN and NOTIFY on a connection of its own, and opens it again when lost. */
export async function openPostgresChangeFeed({
  createClient,
  onChange,
  answers,
  log,
}: PostgresChangeFeedOptions): Promise<PostgresChangeFeed> {
  const ownId = randomUUID();
  let client: Client | undefined;
  let isClosed = false;
  let isUntold = false;
  let untoldSubject: ChangeSubject | undefined;
  let isTelling = false;
  let retryTimer: NodeJS.Timeout | undefined;
  let retryMs = firstRetryMs;

  async function open(): Promise<void> {
    const opened = createClient();
    opened.on('error', () => lose(opened));
    opened.on('end', () => lose(opened));
    opened.on('notification', ({ payload }) => {
      const { from, subject } = readNotification(payload);
      if (from !== ownId) onChange(subject);
    });
    try {
      await answers.wait(opened.connect());
      await answers.wait(opened.query(`listen ${channel}`));
    } catch (error) {
      await opened.end().catch(() => {});
      throw error;
    }
    if (isClosed) {
      await opened.end();
      return;
    }
    client = opened;
    retryMs = firstRetryMs;
    if (isUntold) tell();
  }

  function lose(lost: Client): void {
    if (client !== lost) return;
    client = undefined;
    void lost.end().catch(() => {});
    if (isClosed) return;
    log.warn({}, 'lost the connection that tells of changes in the database');
    retryLater();
  }

  function retryLater(): void {
    retryTimer = setTimeout(() => {
      open().then(
        () => {
          if (client === undefined) return;
          log.info({}, 'changes in the database are told again');
          onChange(undefined);
        },
        () => {
          retryMs = Math.min(retryMs * 2, longestRetryMs);
          if (!isClosed) retryLater();
        },
      );
    }, retryMs);
    retryTimer.unref();
  }

  function tell(): void {
    if (client === undefined || isTelling) return;
    const teller = client;
    const payload = JSON.stringify({ from: ownId, subject: untoldSubject });
    isUntold = false;
    isTelling = true;
    teller
      .query('select pg_notify($1, $2)', [channel, payload])
      .catch(() => {
        isUntold = true;
        untoldSubject = undefined;
        lose(teller);
      })
      .finally(() => {
        isTelling = false;
        if (isUntold) tell();
      });
  }

  await open();

  return {
    announce(subject) {
      // Two changes that wait to be told are told as one that may concern anyone.
      untoldSubject = isUntold ? undefined : subject;
      isUntold = true;
      tell();
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      clearTimeout(retryTimer);
      const last = client;
      client = undefined;
      // Ending waits for a notification that is still on its way.
      await last?.end().catch(() => {});
    },
  };
}

/** What cannot be read may concern anyone, and was not sent by this process. */
function readNotification(payload: string | undefined): {
  readonly from: unknown;
  readonly subject: ChangeSubject | undefined;
} {
  try {
    const { from, subject } = JSON.parse(payload ?? '') as { from: unknown; subject: unknown };
    return { from, subject: parseChangeSubject(subject) };
  } catch {
    return { from: undefined, subject: undefined };
  }
}
