import { Agent, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import {
  requestAnswer,
  requestText,
  type TextAnswer,
} from '../../cluster/instances/request-text.ts';
import { timeLimit } from '../../platform/concurrency/time-limit.ts';
import type { Secret } from '../../platform/config/secret.ts';
import { randomSecret } from '../../platform/crypto/random.ts';
import { HubError, StartupError } from '../../platform/errors.ts';
import type { FindIdentity } from '../../platform/internal-tls/internal-authority.ts';
import { text } from '../../platform/texts/text.ts';
import { currentTrace } from '../../platform/tracing/trace.ts';
import { VerifyingAgent } from '../proxy/verifying-agent.ts';
import { readEvents } from './event-reader.ts';
import {
  type FeedEvent,
  feedEvent,
  type GatewaySettings,
  gatewayProtocol,
  silenceMs,
} from './feed-events.ts';
import {
  type AnswerOf,
  type QuestionName,
  type QuestionOf,
  readAnswer,
} from './gateway-questions.ts';
import { requireOwnHub } from './own-hub.ts';

export type Snapshot = Extract<FeedEvent, { kind: 'snapshot' }>;
export type News = Exclude<FeedEvent, { kind: 'snapshot' | 'heartbeat' }>;

/** Takes what the feed tells. */
export interface FeedReceiver {
  snapshot(snapshot: Snapshot): void;
  news(news: News): void;
}

/** How a gateway process reaches its hub. */
export interface HubLink extends AsyncDisposable {
  /** Hands over the snapshot that was first, and everything from then on. */
  deliverTo(receiver: FeedReceiver): void;
  isConnected(): boolean;
  /** For how long nothing can have been heard; 0 while the feed is there. */
  silentMs(): number;
  /** When the hub sent what was heard last, by its own clock in milliseconds since 1970. */
  lastEventAtMs(): number;
  /** Waits for the feed; false when it is not there in time. */
  untilConnected(limitMs: number): Promise<boolean>;
  /**
   * Asks the hub, and waits for it for a while when it is away. Throws `unavailable` when it does not come back, and
   * `upstream_failed` for an answer that is none.
   */
  ask<Name extends QuestionName>(name: Name, question: QuestionOf<Name>): Promise<AnswerOf<Name>>;
  readonly settings: GatewaySettings;
}

export interface HubLinkOptions {
  /** Base URL of the hub, a slash at its end. */
  readonly hubUrl: URL;
  readonly token: Secret;
  /** Of this gateway, unique among those of the hub. */
  readonly name: string;
  readonly version: string;
  readonly log: Logger;
  /** Whether the hub runs on this machine, under the account of this program. */
  readonly isLocal?: boolean;
  /** What it shows the hub, and checks it by, where that is `Hub.internal_ssl`. */
  readonly identity?: FindIdentity;
}

const answerMs = 10_000;
const maxAnswerBytes = 16 * 1024 * 1024;
/** How long a question waits for a hub that is away. */
const patienceMs = 10_000;
const firstDelayMs = 50;
const maxDelayMs = 1_000;

/**
 * Follows the feed of a hub until it is disposed of; resolves with the first snapshot. A gap, a repetition, silence
 * and every other fault end the connection, and the next one begins with a new snapshot. Throws StartupError where
 * waiting would not help: the hub refuses the token, or speaks another protocol.
 */
export async function connectToHub(options: HubLinkOptions, signal: AbortSignal): Promise<HubLink> {
  const { hubUrl, token, log, identity } = options;
  const headers = { authorization: `token ${token.reveal()}` };
  const apiUrl = new URL('hub/api/gateway/', hubUrl);
  const agent =
    hubUrl.protocol === 'https:'
      ? new TlsAgent({ keepAlive: true })
      : options.isLocal === true
        ? // Whose program has the port of the hub is asked once a connection stands, before anything is sent on it.
          new VerifyingAgent(() => requireOwnHub(hubUrl), { keepAlive: true })
        : new Agent({ keepAlive: true });
  const ending = new AbortController();
  const stopped = AbortSignal.any([signal, ending.signal]);
  const first = Promise.withResolvers<Snapshot>();
  const { promise: receiving, resolve: deliverTo } = Promise.withResolvers<FeedReceiver>();
  let waiting = Promise.withResolvers<void>();
  let isConnected = false;
  let lastEventAtMs = performance.now();
  let sentAtMs = 0;
  /** Of the settings that this gateway runs with. */
  let settings = '';

  function setConnected(isNow: boolean): void {
    if (isNow === isConnected) return;
    isConnected = isNow;
    if (isNow) {
      log.info({ hub: hubUrl.href }, 'following hub');
      waiting.resolve();
    } else {
      log.warn({ hub: hubUrl.href }, 'hub unreachable');
      waiting = Promise.withResolvers<void>();
    }
  }

  async function followOnce(): Promise<void> {
    const nonce = randomSecret(16);
    const url = new URL('feed', apiUrl);
    const { name, version } = options;
    url.search = new URLSearchParams({ name, version, settings, nonce }).toString();
    const cutting = new AbortController();
    const timer = setTimeout(() => cutting.abort(new Error('the feed fell silent')), silenceMs);
    try {
      const response = await requestAnswer(url, {
        headers: { ...headers, accept: 'text/event-stream' },
        signal: AbortSignal.any([stopped, cutting.signal]),
        agent,
        ...identity?.(),
      });
      if (response.statusCode !== 200) throw refusalOf(response);
      let last: number | undefined;
      for await (const text of readEvents(response, () => timer.refresh())) {
        const event = feedEvent.parse(JSON.parse(text));
        last = checkNumber(event, last);
        if (event.kind === 'snapshot') {
          checkSnapshot(event, nonce);
          first.resolve(event);
          sentAtMs = event.now_ms;
          settings ||= event.settings_digest;
          (await receiving).snapshot(event);
          setConnected(true);
        } else if (event.kind === 'heartbeat') sentAtMs = event.at_ms ?? sentAtMs;
        else (await receiving).news(event);
        lastEventAtMs = performance.now();
      }
    } finally {
      clearTimeout(timer);
    }
  }

  async function follow(): Promise<void> {
    let delayMs = firstDelayMs;
    while (!stopped.aborted) {
      try {
        await followOnce();
        delayMs = firstDelayMs;
      } catch (error) {
        if (stopped.aborted) break;
        if (error instanceof StartupError) first.reject(error);
        log.debug({ err: error }, 'hub feed disconnected');
      }
      if (isConnected) delayMs = firstDelayMs;
      setConnected(false);
      // Before the first snapshot nothing else keeps the process.
      await delay(delayMs, undefined, { signal: stopped }).catch(() => {});
      delayMs = Math.min(delayMs * 2, maxDelayMs);
    }
    first.reject(stopped.reason);
  }

  const following = follow();
  // Where the start fails, the reason is thrown below.
  first.promise.catch(() => {});
  let snapshot: Snapshot;
  try {
    snapshot = await first.promise;
  } catch (error) {
    ending.abort();
    await following;
    throw error;
  }

  async function untilConnected(limitMs: number): Promise<boolean> {
    if (isConnected) return true;
    await Promise.race([
      waiting.promise,
      delay(limitMs, undefined, { signal: stopped, ref: false }).catch(() => {}),
    ]);
    return isConnected;
  }

  async function asked<Name extends QuestionName>(
    name: Name,
    question: QuestionOf<Name>,
    further: Readonly<Record<string, string>>,
  ): Promise<AnswerOf<Name>> {
    const giveUpAtMs = performance.now() + patienceMs;
    for (;;) {
      const leftMs = giveUpAtMs - performance.now();
      if (leftMs <= 0 || !(await untilConnected(leftMs))) throw hubIsAway();
      let response: TextAnswer;
      try {
        response = await requestText(new URL('questions', apiUrl), {
          method: 'POST',
          headers: { ...headers, ...further, 'content-type': 'application/json' },
          body: JSON.stringify({ name, question }),
          signal: AbortSignal.any([stopped, timeLimit(answerMs)]),
          agent,
          ...identity?.(),
          maxAnswerBytes,
        });
      } catch (error) {
        if (stopped.aborted) throw hubIsAway(error);
        await delay(firstDelayMs, undefined, { ref: false });
        continue;
      }
      if (response.status === 503) {
        await delay(firstDelayMs * 4, undefined, { ref: false });
        continue;
      }
      const read = response.status === 200 ? readAnswer(name, jsonOf(response.text)) : undefined;
      if (read !== undefined) return read.answer;
      throw new HubError('upstream_failed', text`The hub could not check who you are.`, {
        cause: new Error(`${name}: ${response.status} ${response.text.slice(0, 300)}`),
      });
    }
  }

  return {
    settings: snapshot.settings as GatewaySettings,
    deliverTo,
    isConnected: () => isConnected,
    silentMs: () => (isConnected ? 0 : performance.now() - lastEventAtMs),
    lastEventAtMs: () => sentAtMs,
    untilConnected,

    ask(name, question) {
      const ask = (further = {}) => asked(name, question, further);
      return currentTrace.getStore()?.asking(`ask hub: ${name}`, ask) ?? ask();
    },

    async [Symbol.asyncDispose]() {
      ending.abort();
      await following;
      agent.destroy();
    },
  };
}

/** Throws for a gap and for a repetition. */
function checkNumber({ kind, number }: FeedEvent, last: number | undefined): number {
  const expected = kind === 'heartbeat' ? last : (last ?? 0) + 1;
  const isFirst = last === undefined;
  if (number !== expected || isFirst !== (kind === 'snapshot')) {
    throw new Error(`the feed has event ${number} (${kind}) after ${last}`);
  }
  return number;
}

function checkSnapshot({ protocol, nonce }: Snapshot, asked: string): void {
  if (protocol !== gatewayProtocol) {
    throw new StartupError(
      `the hub speaks protocol ${protocol} with its gateways, and this one ${gatewayProtocol}; run the same version of both`,
    );
  }
  if (nonce !== asked) throw new Error('the feed answers another request');
}

function refusalOf(response: IncomingMessage): Error {
  response.destroy();
  const { statusCode: status } = response;
  if (status === 401 || status === 403) {
    return new StartupError(
      'the hub refuses the token of this gateway; it must be that of a service with a role that has the scope gateway',
    );
  }
  return new Error(`the feed was answered with ${status}`);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function hubIsAway(cause?: unknown): HubError {
  return new HubError('unavailable', text`The hub cannot be reached right now.`, {
    cause,
    hint: text`Try again in a moment.`,
    retryAfterSeconds: 5,
  });
}
