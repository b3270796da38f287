import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { HubError } from '../../platform/errors.ts';
import {
  errorBody,
  retryAfterHeader,
  toErrorResponse,
  writeAnswer,
} from '../../platform/http/answer.ts';
import { readTextBody } from '../../platform/http/body.ts';
import { savePhrase, text } from '../../platform/texts/text.ts';
import { type Challenges, createChallenges } from './challenges.ts';
import type { ErrorSaid } from './channel-caller.ts';
import { type ChannelSignature, channelHeaders } from './channel-signature.ts';

/** Does what another instance asks for; throws HubError for what it refuses. */
export type ChannelOperation = (params: unknown) => Promise<unknown>;

/** Answers what other instances send to the internal listener. */
export interface ChannelReceiver {
  handle(operation: string, work: ChannelOperation): void;
  /** Takes a request below the path of the channel; false leaves it to the hub. */
  receive(req: IncomingMessage, res: ServerResponse): boolean;
}

const maxQuestionBytes = 64 * 1024;
const callsAtOnce = 32;
const maxWaiting = 256;

/** `path` is that of the channel with its base path, a slash at both ends. */
export function createChannelReceiver(deps: {
  readonly path: string;
  readonly self: { readonly id: string; readonly name: string };
  readonly signature: ChannelSignature;
  readonly log: Logger;
  readonly challenges?: Challenges;
}): ChannelReceiver {
  const { path, self, signature, log, challenges = createChallenges() } = deps;
  const operations = new Map<string, ChannelOperation>();
  const limit = createLimiter(callsAtOnce);
  let calls = 0;

  /** Counts only what is proven genuine: no one else can keep instances from reaching each other. */
  async function run(work: () => Promise<unknown>): Promise<unknown> {
    if (calls >= callsAtOnce + maxWaiting) throw busy();
    calls += 1;
    try {
      return await limit(work);
    } finally {
      calls -= 1;
    }
  }

  /** Proves to who asks that this is an instance of their hub, and which one. */
  function answerChallenge(question: string): string {
    const challenge = challenges.issue();
    const proof = signature.sign('proof', [question, self.id, challenge]);
    return JSON.stringify({ id: self.id, name: self.name, challenge, proof });
  }

  async function call(req: IncomingMessage, operation: string): Promise<unknown> {
    const [challenge, sender, signed] = [
      channelHeaders.challenge,
      channelHeaders.sender,
      channelHeaders.signature,
    ].map((name) => String(req.headers[name] ?? ''));
    if (!challenges.isFresh(challenge ?? '')) throw refused();
    const body = await readTextBody(req, maxQuestionBytes);
    const parts = [self.id, sender ?? '', challenge ?? '', operation, hash('sha256', body)];
    if (!signature.verify('call', parts, signed ?? '') || !challenges.use(challenge ?? '')) {
      throw refused();
    }
    const work = operations.get(operation);
    if (work === undefined) {
      throw new HubError('unavailable', text`The instance "${self.name}" has another version.`, {
        hint: text`Run the same version of the hub on all instances.`,
      });
    }
    return run(async () => work(body === '' ? undefined : JSON.parse(body)));
  }

  async function answerCall(req: IncomingMessage, res: ServerResponse, operation: string) {
    let status = 200;
    let body: string;
    let retryAfter = {};
    try {
      body = JSON.stringify({ result: await call(req, operation) });
    } catch (thrown) {
      const error = toErrorResponse(thrown);
      retryAfter = retryAfterHeader(error);
      const { isBug, errorId } = error;
      if (isBug) log.error({ operation, errorId, err: thrown }, 'instance call failed');
      ({ status } = error);
      const { message, hint } = error.shown ?? error;
      const shown: ErrorSaid = {
        message: savePhrase(message),
        ...(hint !== undefined && { hint: savePhrase(hint) }),
      };
      body = errorBody(error, { shown });
    }
    const challenge = String(req.headers[channelHeaders.challenge] ?? '');
    const parts = [challenge, String(status), hash('sha256', body)];
    writeAnswer(req, res, {
      status,
      headers: {
        ...retryAfter,
        'content-type': 'application/json',
        'cache-control': 'no-store',
        [channelHeaders.signature]: signature.sign('answer', parts),
      },
      body,
    });
  }

  return {
    handle: (operation, work) => void operations.set(operation, work),

    receive(req, res) {
      const { method, url = '' } = req;
      if (!url.startsWith(path)) return false;
      const rest = url.slice(path.length);
      const [, question] = /^challenge\?question=([\w-]{16,64})$/.exec(rest) ?? [];
      if (method === 'GET' && question !== undefined) {
        const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' };
        writeAnswer(req, res, { status: 200, headers, body: answerChallenge(question) });
        return true;
      }
      if (method !== 'POST' || !/^[a-z-]{1,40}$/.test(rest)) return false;
      void answerCall(req, res, rest);
      return true;
    },
  };
}

function refused(): HubError {
  return new HubError('forbidden', text`This is for other instances of the hub.`);
}

function busy(): HubError {
  return new HubError('too_many_requests', text`Too many calls of other instances at once.`, {
    retryAfterSeconds: 1,
  });
}
