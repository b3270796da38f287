import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import type { Logger } from 'pino';
import { z } from 'zod';
import type { AuditReason } from '../../platform/audit/reason-labels.ts';
import { hashSecret } from '../../platform/crypto/hash.ts';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import { HubError } from '../../platform/errors.ts';
import type { AuditTrail } from '../../platform/store/audit-trail.ts';
import { type KeyvSpace, useOnce } from '../../platform/store/keyv-space.ts';
import { text } from '../../platform/texts/text.ts';
import type { LoginThrottle } from '../authentication/login-throttle.ts';
import type { Passkey, PasskeyStore } from '../users/passkey-store.ts';
import type { User, UserStore } from '../users/user-store.ts';
import { newRecoveryCodes } from './recovery-codes.ts';
import type { SecondFactorRule } from './second-factor-rule.ts';
import type { Assertion, RelyingParty } from './webauthn.ts';

/** What a passkey is asked for; an answer to one question is none to another. */
export type PasskeyPurpose = 'login' | 'second-factor' | 'confirm';

type Account = Pick<User, 'id' | 'name'>;

/** Why browsers offer no passkeys for the hub: plain http, or an address without a name. */
export type PasskeysUnusable = 'insecure' | 'no-name';

/** A question to a browser. */
export interface PasskeyQuestion {
  /** Options for `navigator.credentials`, as JSON (Web Authentication Level 3 §5.1). */
  readonly publicKey: object;
  /** Comes back with the answer. */
  readonly state: string;
}

/** What a browser sent back. */
export interface PasskeyAnswer {
  readonly state: string;
  /** What `navigator.credentials` gave, as JSON text. */
  readonly response: string;
  /** The same text as in the question: what tells this browser from all others. */
  readonly browser: string;
}

/** The answer in the fields of a form. */
export function passkeyAnswerOf(
  fields: { get(name: string): string | null | undefined },
  browser: string,
): PasskeyAnswer {
  return {
    state: fields.get('passkey_state') ?? '',
    response: fields.get('passkey_response') ?? '',
    browser,
  };
}

export type PasskeyResult =
  | { readonly outcome: 'right'; readonly user: User }
  | { readonly outcome: 'wrong' }
  | { readonly outcome: 'delayed'; readonly retryAfterSeconds: number };

/** Passkeys of accounts with a password here (Web Authentication Level 3). */
export interface Passkeys {
  /** Undefined where browsers can use them. */
  readonly unusable: PasskeysUnusable | undefined;
  listOf(userId: string): Promise<readonly Passkey[]>;
  /** Asks a browser to make a passkey. */
  askForNew(user: Account, browser: string): Promise<PasskeyQuestion>;
  /**
   * Keeps what the browser made, and gives recovery codes to a user who has none. Throws `bad_request` for anything
   * else, and `conflict`.
   */
  add(user: Account, answer: PasskeyAnswer, name: string): Promise<readonly string[] | undefined>;
  /** Asks a browser for a passkey: one of this user, or of any user for a login. */
  ask(
    purpose: PasskeyPurpose,
    options: { readonly user?: Account; readonly browser: string },
  ): Promise<PasskeyQuestion>;
  /** Checks the answer. A question can be answered once; what fails counts as a wrong code does. */
  check(
    purpose: PasskeyPurpose,
    answer: PasskeyAnswer & { readonly user?: Account; readonly address: string },
  ): Promise<PasskeyResult>;
  /** Throws `not_found`, and `bad_request` for a name that is none. */
  rename(userId: string, id: string, name: string): Promise<void>;
  /** Throws `not_found`, and `conflict` where it is the only second factor and one is compulsory. */
  remove(user: Pick<User, 'id' | 'name' | 'isAdmin'>, id: string): Promise<void>;
}

export const maxPasskeyNameLength = 60;
const maxPasskeys = 20;
const lifetimeMs = 5 * 60_000;
/** How long a browser waits for the user (Web Authentication Level 3 §5.1). */
const timeoutMs = 180_000;
const maxAnswerLength = 64 * 1024;
const unknownUser = 'unknown passkey';

const stateSchema = z.object({ challenge: z.string(), expiresAt: z.number() });

/** At first use, which is not that of each login page: the library takes 25 MB, and most hubs are without passkeys. */
const loadWebAuthn = () => import('./webauthn.ts');

/**
 * A question is not kept: its challenge travels with it, sealed for one browser, one purpose and one user, so
 * that an unanswered question costs nothing. Only the challenges of right answers are kept, until they
 * would have ended by themselves, where all processes of the hub see them.
 */
export function createPasskeys(deps: {
  readonly passkeyStore: PasskeyStore;
  readonly users: Pick<UserStore, 'findById'>;
  readonly secondFactorRule: Pick<SecondFactorRule, 'isRequiredOf'>;
  readonly used: Pick<KeyvSpace<true>, 'update'>;
  readonly sealer: Sealer;
  readonly throttle: LoginThrottle;
  readonly audit: Pick<AuditTrail, 'recordBounded'>;
  readonly publicUrl: URL;
  readonly titleForAll: () => string;
  readonly log: Logger;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}): Passkeys {
  const { passkeyStore: store, sealer, now, log, publicUrl } = deps;
  const party: RelyingParty = {
    id: publicUrl.hostname,
    get name() {
      return deps.titleForAll();
    },
    origin: publicUrl.origin,
  };

  function newQuestion(context: string): { readonly challenge: string; readonly state: string } {
    const challenge = randomBytes(32).toString('base64url');
    const content: z.output<typeof stateSchema> = { challenge, expiresAt: now() + lifetimeMs };
    return { challenge, state: sealer.seal(JSON.stringify(content), context) };
  }

  /** The challenge of a question, unless it was for another browser, purpose or user, or too long ago. */
  function challengeOf(state: string, context: string): string | undefined {
    const opened = sealer.open(state, context);
    const content = opened === undefined ? undefined : stateSchema.parse(JSON.parse(opened));
    return content !== undefined && content.expiresAt > now() ? content.challenge : undefined;
  }

  const isFirstAnswer = (challenge: string) =>
    useOnce(deps.used, hashSecret(challenge), lifetimeMs);

  /** The user whose passkey gave the answer, or why it is no good. */
  async function judge(
    purpose: PasskeyPurpose,
    { state, browser, user }: PasskeyAnswer & { readonly user?: Account },
    { assertion, passkey }: Found,
  ): Promise<{ readonly user: User } | Problem> {
    const challenge = challengeOf(state, contextOf(purpose, { user, browser }));
    if (challenge === undefined) return { problem: 'expired' };
    if (assertion === undefined) return { problem: 'malformed' };
    if (passkey === undefined) return { problem: 'unknown' };
    if (user !== undefined && passkey.userId !== user.id) return { problem: 'other_user' };
    const { verifyAssertion } = await loadWebAuthn();
    // What verified its user once can always do so: without, it may be in the wrong hands.
    const requiresVerification = purpose === 'login' || passkey.verifiesUser;
    const requiresHandle = purpose === 'login';
    const use = await reasoned(() =>
      verifyAssertion(assertion, {
        party,
        challenge,
        passkey,
        requiresVerification,
        requiresHandle,
      }),
    );
    if ('problem' in use) return use;
    if (!(await isFirstAnswer(challenge))) return { problem: 'used' };
    const { signCount } = use;
    if (!(await store.recordUse(passkey, { signCount, at: new Date(now()), purpose }))) {
      return { problem: 'counter' };
    }
    const owner = await deps.users.findById(passkey.userId);
    return owner === undefined ? { problem: 'unknown' } : { user: owner };
  }

  async function findPasskey(response: string): Promise<Found> {
    if (response.length > maxAnswerLength) return {};
    const { parseAssertion } = await loadWebAuthn();
    const assertion = await reasoned(async () => parseAssertion(response));
    if ('problem' in assertion) return {};
    return { assertion, passkey: await store.find(assertion.id) };
  }

  function requireUsable(): void {
    if (unusable === undefined) return;
    throw new HubError('not_found', text`Passkeys cannot be used at this address of the hub.`);
  }

  const unusable = whyUnusable(publicUrl);

  return {
    unusable,
    listOf: (userId) => store.listOfUser(userId),

    async askForNew(user, browser) {
      requireUsable();
      const { challenge, state } = newQuestion(contextOf('add', { user, browser }));
      const { creationOptions } = await loadWebAuthn();
      const known = await store.listOfUser(user.id);
      return {
        publicKey: await creationOptions({ party, challenge, user, known, timeoutMs }),
        state,
      };
    },

    async add(user, { state, response, browser }, givenName) {
      requireUsable();
      const challenge = challengeOf(state, contextOf('add', { user, browser }));
      const { verifyCreation } = await loadWebAuthn();
      const made =
        challenge === undefined || response.length > maxAnswerLength
          ? ({ problem: 'expired' } as const)
          : await reasoned(() => verifyCreation(response, { party, challenge }));
      if ('problem' in made || challenge === undefined || !(await isFirstAnswer(challenge))) {
        const { problem, message }: Problem = 'problem' in made ? made : { problem: 'used' };
        log.warn({ user: user.name, problem: message ?? problem }, 'new passkey refused');
        throw new HubError('bad_request', text`This passkey could not be added.`, {
          hint: text`Go back, reload the page and try again.`,
        });
      }
      const name = nameOf(givenName);
      const passkey = { ...made, userId: user.id, name, createdAt: new Date(now()) };
      const { codes, hashes: recoveryCodeHashes } = newRecoveryCodes(user.id);
      const added = await store.add(passkey, { limit: maxPasskeys, recoveryCodeHashes });
      return added.issuesRecoveryCodes ? codes : undefined;
    },

    async ask(purpose, { user, browser }) {
      requireUsable();
      const { challenge, state } = newQuestion(contextOf(purpose, { user, browser }));
      const allowed = user === undefined ? [] : await store.listOfUser(user.id);
      const requiresVerification =
        purpose === 'login' || (allowed.length > 0 && allowed.every((each) => each.verifiesUser));
      const publicKey = {
        challenge,
        rpId: party.id,
        timeout: timeoutMs,
        allowCredentials: allowed.map(({ id, transports }) => ({
          type: 'public-key',
          id,
          transports,
        })),
        userVerification: requiresVerification ? 'required' : 'preferred',
      };
      return { publicKey, state };
    },

    async check(purpose, { address, ...answer }) {
      requireUsable();
      const found = await findPasskey(answer.response);
      const owner =
        answer.user ?? (found.passkey && (await deps.users.findById(found.passkey.userId)));
      const tried = await deps.throttle.attempt(
        { userName: owner?.name ?? unknownUser, address },
        () => judge(purpose, answer, found),
        (judged) => ('user' in judged ? 'success' : 'failure'),
      );
      if (tried.outcome === 'tried' && 'user' in tried.result) {
        return { outcome: 'right', user: tried.result.user };
      }
      const { problem, message }: Problem =
        tried.outcome === 'tried' && 'problem' in tried.result
          ? tried.result
          : { problem: 'throttled' };
      const logged = { user: owner?.name, purpose, problem: message ?? problem };
      log.warn(logged, 'passkey refused');
      deps.audit.recordBounded({
        action: 'passkey.check',
        ...(owner !== undefined && { target: { kind: 'user', name: owner.name } as const }),
        result: 'refused',
        detail: { purpose, reason: problem, ...(message !== undefined && { message }) },
      });
      if (tried.outcome === 'tried') return { outcome: 'wrong' };
      return { outcome: 'delayed', retryAfterSeconds: tried.retryAfterSeconds };
    },

    async rename(userId, id, name) {
      if (!(await store.rename(userId, id, nameOf(name)))) throw noSuchPasskey();
    },

    async remove(user, id) {
      const mayBeLast = !(await deps.secondFactorRule.isRequiredOf(user));
      if (!(await store.remove(user.id, id, { mayBeLast }))) throw noSuchPasskey();
    },
  };
}

/** An answer that could be read, and the passkey that it names. */
interface Found {
  readonly assertion?: Assertion;
  readonly passkey?: Passkey | undefined;
}

interface Problem {
  readonly problem: AuditReason;
  /** What the library says of it. */
  readonly message?: string;
}

async function reasoned<Result>(work: () => Promise<Result>): Promise<Result | Problem> {
  const { WebAuthnError } = await loadWebAuthn();
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof WebAuthnError)) throw error;
    return { problem: 'invalid_response', message: error.message.slice(0, 200) };
  }
}

function contextOf(
  purpose: PasskeyPurpose | 'add',
  { user, browser }: { readonly user?: Account | undefined; readonly browser: string },
): string {
  return JSON.stringify([purpose, user?.id ?? '', browser]);
}

/** Secure contexts (W3C Secure Contexts §3.1), and a host that can be a relying party's (§5.1.3). */
function whyUnusable({ protocol, hostname }: URL): PasskeysUnusable | undefined {
  const isLocal = hostname === 'localhost' || hostname.endsWith('.localhost');
  if (protocol !== 'https:' && !isLocal) return 'insecure';
  return isIP(hostname.replaceAll(/[[\]]/g, '')) === 0 ? undefined : 'no-name';
}

function nameOf(given: string): string {
  const name = given.normalize('NFC').replaceAll(/\s+/g, ' ').trim();
  if (name !== '' && name.length <= maxPasskeyNameLength && !/\p{C}/u.test(name)) return name;
  throw new HubError('bad_request', text`This cannot be the name of a passkey.`, {
    hint: text`It has 1 to ${maxPasskeyNameLength} characters, without control characters.`,
  });
}

function noSuchPasskey(): HubError {
  return new HubError('not_found', text`You have no such passkey.`);
}
