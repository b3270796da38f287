import { hash } from 'node:crypto';
import type { Logger } from 'pino';
import { randomSecret } from '../../platform/crypto/random.ts';
import { HubError, messageOf, TextError } from '../../platform/errors.ts';
import { isHubErrorCode } from '../../platform/http/answer.ts';
import type { FindIdentity } from '../../platform/internal-tls/internal-authority.ts';
import { type Phrase, readPhrase, type SavedPhrase, text } from '../../platform/texts/text.ts';
import { type ChannelSignature, channelHeaders } from './channel-signature.ts';
import { requestText, type TextAnswer } from './request-text.ts';

/** Another instance, and where it can be reached from here. */
export interface InstanceAddress {
  readonly id: string;
  readonly name: string;
  /** Of its internal listener; undefined when it has none that is reached from here. */
  readonly url: string | undefined;
}

/** Who answers at an address. */
export type AnsweringParty =
  | { readonly kind: 'instance'; readonly id: string; readonly name: string }
  /** Something that is not an instance of this hub. */
  | { readonly kind: 'foreign'; readonly reason: Phrase }
  | { readonly kind: 'none'; readonly reason: Phrase };

/** Calls other instances. */
export interface ChannelCaller {
  /**
   * Has another instance do something. Throws what it threw, and `unavailable` where it does not answer
   * in time or something else answers at its address; then nothing was done, or it is not known.
   */
  call(
    to: InstanceAddress,
    operation: string,
    params?: unknown,
    options?: { readonly timeoutMs?: number },
  ): Promise<unknown>;
  /** Who answers at the address of an internal listener. */
  identify(url: string): Promise<AnsweringParty>;
}

const maxAnswerBytes = 1024 * 1024;
const challengeTimeoutMs = 3_000;
const defaultTimeoutMs = 10_000;

interface Introduction {
  readonly id: string;
  readonly name: string;
  readonly challenge: string;
}

/** `path` is that of the channel with its base path. */
export function createChannelCaller(deps: {
  readonly path: string;
  readonly self: { readonly id: string };
  readonly signature: ChannelSignature;
  readonly identity?: FindIdentity;
  readonly log: Logger;
}): ChannelCaller {
  const { path, self, signature, identity, log } = deps;
  /** Since when instances have not answered, by id. */
  const silentSince = new Map<string, Date>();

  async function introduce(url: string): Promise<Introduction> {
    const question = randomSecret();
    const answer = await ask(new URL(`${path}challenge?question=${question}`, url), {
      ...identity?.(),
      signal: AbortSignal.timeout(challengeTimeoutMs),
    });
    const reported = readIntroduction(answer.text);
    if (answer.status !== 200 || reported === undefined) {
      throw new ForeignInstanceError(
        text`what answers there is no hub with this base path (status ${String(answer.status)})`,
      );
    }
    const { id, name, challenge, proof } = reported;
    if (!signature.verify('proof', [question, id, challenge], proof)) {
      throw new ForeignInstanceError(text`a hub with another cookie_secret answers there`);
    }
    return { id, name, challenge };
  }

  async function callThere(
    to: InstanceAddress & { readonly url: string },
    operation: string,
    options: { readonly body: string; readonly timeoutMs: number },
  ) {
    const { body, timeoutMs } = options;
    const { id, name, challenge } = await introduce(to.url);
    if (id !== to.id) {
      throw new ForeignInstanceError(
        id === self.id
          ? text`it leads back to this instance`
          : text`the instance "${name}" answers there (or "${to.name}" has just been restarted)`,
      );
    }
    const parts = [id, self.id, challenge, operation, hash('sha256', body)];
    const answer = await ask(new URL(path + operation, to.url), {
      method: 'POST',
      body,
      headers: {
        'content-type': 'application/json',
        [channelHeaders.sender]: self.id,
        [channelHeaders.challenge]: challenge,
        [channelHeaders.signature]: signature.sign('call', parts),
      },
      ...identity?.(),
      signal: AbortSignal.timeout(timeoutMs),
    });
    const answerParts = [challenge, String(answer.status), hash('sha256', answer.text)];
    const signed = String(answer.headers[channelHeaders.signature] ?? '');
    if (!signature.verify('answer', answerParts, signed)) {
      throw new ForeignInstanceError(
        text`its answer is not signed (status ${String(answer.status)})`,
      );
    }
    return answer;
  }

  /** Turns a call that did not come through into what its caller is told. */
  function unanswered(to: InstanceAddress, thrown: unknown): HubError {
    const since = silentSince.get(to.id) ?? new Date();
    if (!silentSince.has(to.id)) {
      silentSince.set(to.id, since);
      log.warn(
        { instance: to.name, url: to.url, err: thrown },
        thrown instanceof ForeignInstanceError
          ? 'instance address belongs to another program'
          : 'instance unreachable',
      );
    }
    const time = `${since.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
    return new HubError(
      'unavailable',
      text`The instance "${to.name}" of the hub has not answered since ${time}.`,
      { hint: text`Try again in a moment.`, retryAfterSeconds: 5, cause: thrown },
    );
  }

  return {
    async call(to, operation, params, { timeoutMs = defaultTimeoutMs } = {}) {
      const { url } = to;
      if (url === undefined) {
        throw new HubError(
          'unavailable',
          text`The instance "${to.name}" of the hub cannot be reached from here.`,
          { hint: text`An administrator has to set Hub.instance_url for it.` },
        );
      }
      const body = params === undefined ? '' : JSON.stringify(params);
      const answer = await callThere({ ...to, url }, operation, { body, timeoutMs }).catch(
        (thrown: unknown) => {
          throw unanswered(to, thrown);
        },
      );
      if (silentSince.delete(to.id)) {
        log.info({ instance: to.name, url }, 'instance reachable again');
      }
      return readResult(answer);
    },

    async identify(url) {
      try {
        const { id, name } = await introduce(url);
        return { kind: 'instance', id, name };
      } catch (thrown) {
        const kind = thrown instanceof ForeignInstanceError ? 'foreign' : 'none';
        return { kind, reason: reasonOf(thrown) };
      }
    },
  };
}

/** Something answers that is not the instance that was asked. */
class ForeignInstanceError extends TextError {
  override readonly name = 'ForeignInstanceError';
}

/** Without `fetch`, which a hub of one instance has no other use for, and which takes 13 MiB. */
async function ask(
  url: URL,
  options: Omit<Parameters<typeof requestText>[1], 'maxAnswerBytes'>,
): Promise<TextAnswer> {
  try {
    return await requestText(url, { ...options, maxAnswerBytes });
  } catch (error) {
    throw error instanceof RangeError
      ? new ForeignInstanceError(text`its answer is too long`)
      : error;
  }
}

function readIntroduction(text: string): (Introduction & { readonly proof: string }) | undefined {
  const { id, name, challenge, proof } = readObject(text);
  const isWhole = [id, name, challenge, proof].every((value) => typeof value === 'string');
  return isWhole
    ? { id: String(id), name: String(name), challenge: String(challenge), proof: String(proof) }
    : undefined;
}

/** What an error says, as instances tell each other. */
export interface ErrorSaid {
  readonly message: SavedPhrase;
  readonly hint?: SavedPhrase;
}

/** Gives what an instance did, or throws what it refused with. */
function readResult({ status, headers, text: json }: TextAnswer): unknown {
  const { result, code, message, hint, shown, ...rest } = readObject(json);
  if (status === 200) return result;
  const { status: _, error_id: __, ...details } = rest;
  const { 'retry-after': retryAfter } = headers;
  const said = shown as ErrorSaid | undefined;
  const advice = said?.hint ?? hint;
  throw new HubError(
    isHubErrorCode(code) ? code : 'internal',
    readPhrase(said?.message ?? message),
    {
      details,
      ...(advice !== undefined && { hint: readPhrase(advice) }),
      ...(retryAfter !== undefined && { retryAfterSeconds: Number(retryAfter) }),
    },
  );
}

function readObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

function reasonOf(thrown: unknown): Phrase {
  const isCaused = thrown instanceof Error && thrown.cause instanceof Error;
  return messageOf(isCaused ? thrown.cause : thrown);
}
