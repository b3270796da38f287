import { type IncomingMessage, type RequestOptions, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { lookupUpstream as lookup } from '../../platform/addresses/upstream-lookup.ts';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import { messageOf } from '../../platform/errors.ts';
import { message, type Phrase, text } from '../../platform/texts/text.ts';
import { type Clock, systemClock } from './clock.ts';
import { connectUnix } from './unix-connection.ts';

export type ProbeResult =
  | {
      readonly ready: true;
      readonly status: number;
      /** From the request to the head of its answer. */
      readonly answeredInMs: number;
    }
  | {
      readonly ready: false;
      /**
       * `refused`: no process listens there. `timeout`: one may, but does not answer. `foreignProcess`: another program
       * than the one that was started answers.
       */
      readonly problem: 'refused' | 'foreign' | 'timeout' | 'status' | 'failed';
      readonly reason: Phrase;
    };

export interface ProbeOptions {
  /** `http://…`, `https://…` or `http+unix://%2Fpath%2Fof.sock`. */
  readonly url: string;
  /** Path that is asked for. */
  readonly path: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/**
 * Asks a web server once whether it is ready: any status below 500 says so, redirects are not
 * followed. Never throws.
 */
export async function probeReadiness(options: ProbeOptions): Promise<ProbeResult> {
  const { url, timeoutMs, signal } = options;
  const timeout = timeLimit(timeoutMs);
  const limit = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  const sinceMs = performance.now();
  try {
    const response = await answerOf(options, limit);
    const answeredInMs = performance.now() - sinceMs;
    response.destroy();
    const { statusCode: status = 0 } = response;
    if (status < 500) return { ready: true, status, answeredInMs };
    return {
      ready: false,
      problem: 'status',
      reason: text`${url} answers with status ${String(status)}`,
    };
  } catch (thrown) {
    if (timeout.aborted) {
      const reason = message('{url} does not answer within {seconds, number} s', {
        url,
        seconds: String(timeoutMs / 1000),
      });
      return { ready: false, problem: 'timeout', reason };
    }
    return explainFailure(url, thrown);
  }
}

/** A probe that takes no answer from another program than the one that was started. */
export function createOwnProbe(
  probe: typeof probeReadiness,
  findForeignProcess: (url: string) => Promise<Phrase | undefined>,
): typeof probeReadiness {
  return async (options) => {
    const result = await probe(options);
    const reason = result.ready ? await findForeignProcess(options.url) : undefined;
    return reason === undefined ? result : { ready: false, problem: 'foreign', reason };
  };
}

/** A probe of which at most `limit` run at once; the others wait. */
export function createBoundedProbe(limit: number): typeof probeReadiness {
  const limiter = createLimiter(limit);
  return (options) => limiter(() => probeReadiness(options));
}

export interface WaitOptions extends Omit<ProbeOptions, 'timeoutMs'> {
  /** How long the server has in all. */
  readonly timeoutMs: number;
  readonly clock?: Clock;
  readonly probe?: typeof probeReadiness;
}

const minPauseMs = 15;
const maxPauseMs = 1_000;
const maxProbeMs = 10_000;
/** A probe that has less time says nothing of a server that does not answer it. */
const tellingProbeMs = 1_000;

/** So long after it was looked for first, something is looked for again: it is seen a quarter of its time late at most. */
export function pauseMsAfter(waitedMs: number): number {
  return Math.min(Math.max(waitedMs / 4, minPauseMs), maxPauseMs);
}

/**
 * Polls, with growing pauses, until the server is ready, the time is over or the
 * signal is aborted; returns the last answer that tells something.
 */
export async function waitUntilReady(options: WaitOptions): Promise<ProbeResult> {
  const { timeoutMs, signal, clock = systemClock, probe = probeReadiness } = options;
  const sinceMs = clock.monotonicMs();
  const deadline = sinceMs + timeoutMs;
  let last: ProbeResult | undefined;
  for (;;) {
    const leftMs = Math.max(1, deadline - clock.monotonicMs());
    const probeMs = Math.min(Math.ceil(leftMs), maxProbeMs);
    const result = await probe({ ...options, timeoutMs: probeMs });
    if (result.ready) return result;
    if (result.problem !== 'timeout' || probeMs >= tellingProbeMs) last = result;
    const pauseMs = pauseMsAfter(clock.monotonicMs() - sinceMs);
    const isOver = clock.monotonicMs() + pauseMs >= deadline;
    if (isOver || signal?.aborted) return last ?? result;
    await clock.sleep(pauseMs, signal);
  }
}

/** The answer of a web server to one request, of which a body is still to be read. Rejects where there is none. */
export function answerOf(
  { url, path }: Pick<ProbeOptions, 'url' | 'path'>,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { request, target } = addressOf(url);
    const probe = request(
      {
        ...target,
        path,
        method: 'GET',
        headers: { accept: '*/*', 'user-agent': 'hub-readiness-probe', connection: 'close' },
        signal,
        // No secret is sent, and who answers is the gateway's question, not this one's.
        rejectUnauthorized: false,
      },
      resolve,
    );
    probe.once('error', reject);
    probe.end();
  });
}

function addressOf(url: string): {
  request: typeof requestHttp | typeof requestHttps;
  target: RequestOptions;
} {
  const socket = /^http\+unix:\/\/([^/]+)/.exec(url)?.[1];
  if (socket !== undefined) {
    const createConnection = () => connectUnix(decodeURIComponent(socket));
    return { request: requestHttp, target: { host: 'localhost', createConnection } };
  }
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replaceAll(/[[\]]/g, '');
  const target = { host, ...(port === '' ? {} : { port }), lookup, agent: false };
  return { request: protocol === 'https:' ? requestHttps : requestHttp, target };
}

function explainFailure(url: string, thrown: unknown): ProbeResult {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
  if (code === 'ECONNREFUSED' || code === 'ENOENT') {
    return { ready: false, problem: 'refused', reason: text`nothing listens on ${url}` };
  }
  const reason = text`${url} cannot be asked: ${messageOf(thrown)}`;
  return { ready: false, problem: 'failed', reason };
}
