import { z } from 'zod';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import { HubError } from '../../platform/errors.ts';
import type { AuditTrail } from '../../platform/store/audit-trail.ts';
import { text } from '../../platform/texts/text.ts';
import type { LoginThrottle } from '../authentication/login-throttle.ts';
import type { PasskeyStore } from '../users/passkey-store.ts';
import type { PasswordCredentialStore } from '../users/password-credential-store.ts';
import type { RecoveryCodeStore } from '../users/recovery-code-store.ts';
import type { SecondFactorStore } from '../users/second-factor-store.ts';
import type { User } from '../users/user-store.ts';
import { newRecoveryCodes, recoveryCodeHash } from './recovery-codes.ts';
import type { SecondFactorRule } from './second-factor-rule.ts';

/** Whose second factor it is, and from where a code comes. */
export interface CodeAttempt {
  readonly user: Pick<User, 'id' | 'name'>;
  readonly address: string;
  readonly code: string;
}

export type CodeResult =
  | { readonly outcome: 'right' }
  | { readonly outcome: 'wrong' }
  | { readonly outcome: 'delayed'; readonly retryAfterSeconds: number };

/** A secret that is yet to be confirmed, as text and as the address that a QR code holds. */
export interface SetUp {
  readonly secret: string;
  readonly uri: string;
  /** Comes back with the first code. */
  readonly state: string;
}

/** A set-up that was begun. */
export interface BegunSetUp {
  readonly user: Pick<User, 'id' | 'name'>;
  readonly state: string;
  /** The login for which it was begun; only that may go on with it. */
  readonly login: string;
}

/** What a login may ask for after the password: an app, or a passkey at least. */
export interface FactorsOfUser {
  /** False also while the set-up of an authenticator app has only begun. */
  readonly hasApp: boolean;
  readonly passkeyCount: number;
  readonly recoveryCodesLeft: number;
}

/**
 * The second factor of accounts with a password: passkeys, and codes by time (RFC 6238), either with recovery
 * codes. What is here of passkeys is whether there are any; see `Passkeys`.
 */
export interface SecondFactors {
  /** Undefined when a login asks for the password alone. */
  find(userId: string): Promise<FactorsOfUser | undefined>;
  /**
   * A secret for a login to confirm: a new one, or after a wrong code the same again. Nothing is kept of it here, so
   * that no other login, which may be that of who knows the password, can put its own secret in its place.
   */
  setUp(begun: Omit<BegunSetUp, 'state'> & { readonly state?: string | undefined }): Promise<SetUp>;
  /**
   * Turns it on with the first code for the secret that this login was shown, and gives recovery codes to a user who
   * has none.
   */
  confirm(
    attempt: CodeAttempt & BegunSetUp,
  ): Promise<
    | { readonly outcome: 'on'; readonly recoveryCodes: readonly string[] | undefined }
    | { readonly outcome: 'ended' }
    | Exclude<CodeResult, { outcome: 'right' }>
  >;
  /** Checks a code or a recovery code; either works once. */
  check(attempt: CodeAttempt): Promise<CodeResult>;
  /** Replaces the recovery codes. Throws `not_found` for a user without a second factor. */
  renewRecoveryCodes(userId: string): Promise<readonly string[]>;
  isRequiredOf(user: Pick<User, 'name' | 'isAdmin'>): Promise<boolean>;
  /** Turns the codes off; false when they were off. Throws `conflict` where they are the only factor and one is compulsory. */
  removeCodes(user: Pick<User, 'id' | 'name' | 'isAdmin'>): Promise<boolean>;
  /** Turns the codes off and removes the passkeys. */
  removeAll(userId: string): Promise<void>;
}

/** Why a code was refused. */
export function codeProblem(
  result: Exclude<CodeResult, { outcome: 'right' }> | { readonly outcome: 'ended' },
): HubError {
  if (result.outcome === 'ended')
    return new HubError('bad_request', text`This page was too old. Scan the new code.`);
  if (result.outcome === 'wrong')
    return new HubError('bad_request', text`This code is wrong, or it has been used already.`);
  const { retryAfterSeconds } = result;
  return new HubError(
    'too_many_requests',
    text`Too many wrong codes. Wait a while, then try again.`,
    { retryAfterSeconds },
  );
}

/**
 * Throws `not_found` for a user without a password: logins by other means ask for no factor here, since their provider
 * has factors of its own.
 */
export async function requirePassword(
  credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>,
  user: Pick<User, 'name'>,
): Promise<void> {
  if ((await credentials.findPasswordHash(user.name)) !== undefined) return;
  throw new HubError(
    'not_found',
    text`A second factor goes with a password, and you have none here.`,
  );
}

/** At first use: most hubs are without second factors. */
const loadTotp = () => import('./totp.ts');

const setUpLifetimeMs = 15 * 60_000;
const setUpSchema = z.object({ secret: z.string(), expiresAt: z.number() });

const setUpContext = ({ user, login }: Omit<BegunSetUp, 'state'>) =>
  `set-up:${JSON.stringify([user.id, login])}`;

/** Attempts are counted apart from those at passwords. */
export function createSecondFactors(deps: {
  readonly secondFactorStore: SecondFactorStore;
  readonly passkeyStore: Pick<PasskeyStore, 'countOfUser' | 'removeAllOfUser'>;
  readonly recoveryCodes: RecoveryCodeStore;
  /** Not that of the passwords: a right password forgets the failures there. */
  readonly throttle: LoginThrottle;
  readonly secondFactorRule: Pick<SecondFactorRule, 'isRequiredOf'>;
  readonly sealer: Sealer;
  readonly titleForAll: () => string;
  readonly audit: Pick<AuditTrail, 'recordBounded'>;
  readonly now: () => number;
}): SecondFactors {
  const { secondFactorStore: store, passkeyStore, recoveryCodes, throttle } = deps;
  const { secondFactorRule: rule } = deps;
  const now = () => new Date(deps.now());

  async function isRight({ user, code }: CodeAttempt): Promise<boolean> {
    const factor = await store.find(user.id);
    if (factor !== undefined) {
      const { timeStepOf } = await loadTotp();
      const step = timeStepOf(factor.totpSecret, code, now());
      if (step !== undefined) return store.takeStep(user.id, step);
    }
    return recoveryCodes.take(user.id, recoveryCodeHash(user.id, code));
  }

  async function throttled<Result>(
    { user, address }: CodeAttempt,
    work: () => Promise<Result>,
    isSuccess: (result: Result) => boolean,
  ) {
    return throttle.attempt({ userName: user.name, address }, work, (result) =>
      isSuccess(result) ? 'success' : 'failure',
    );
  }

  /** The secret of a set-up, unless it was begun for another login or too long ago. */
  function secretOf({ state, ...begun }: BegunSetUp): string | undefined {
    const opened = deps.sealer.open(state, setUpContext(begun));
    const content = opened === undefined ? undefined : setUpSchema.parse(JSON.parse(opened));
    return content !== undefined && content.expiresAt > now().getTime()
      ? content.secret
      : undefined;
  }

  return {
    async find(userId) {
      const [factor, passkeyCount, recoveryCodesLeft] = await Promise.all([
        store.find(userId),
        passkeyStore.countOfUser(userId),
        recoveryCodes.countOfUser(userId),
      ]);
      const hasApp = factor !== undefined;
      if (!hasApp && passkeyCount === 0) return undefined;
      return { hasApp, passkeyCount, recoveryCodesLeft };
    },

    async setUp({ state = '', ...begun }) {
      const { newTotpSecret, totpUri } = await loadTotp();
      const resumed = secretOf({ ...begun, state });
      const secret = resumed ?? newTotpSecret();
      const content = { secret, expiresAt: now().getTime() + setUpLifetimeMs };
      return {
        secret,
        uri: totpUri({ issuer: deps.titleForAll(), userName: begun.user.name, secret }),
        state:
          resumed === undefined
            ? deps.sealer.seal(JSON.stringify(content), setUpContext(begun))
            : state,
      };
    },

    async confirm(attempt) {
      const { user, code } = attempt;
      const totpSecret = secretOf(attempt);
      if (totpSecret === undefined) return { outcome: 'ended' };
      const fresh = newRecoveryCodes(user.id);
      const tried = await throttled(
        attempt,
        async () => {
          const { timeStepOf } = await loadTotp();
          const step = timeStepOf(totpSecret, code, now());
          if (step === undefined) return undefined;
          const recoveryCodeHashes = fresh.hashes;
          return store.add(user.id, { totpSecret, step, recoveryCodeHashes, now: now() });
        },
        (confirmed) => confirmed !== undefined,
      );
      if (tried.outcome === 'delayed') return tried;
      if (tried.result === undefined) return { outcome: 'wrong' };
      const { issuesRecoveryCodes } = tried.result;
      return { outcome: 'on', recoveryCodes: issuesRecoveryCodes ? fresh.codes : undefined };
    },

    async check(attempt) {
      const tried = await throttled(
        attempt,
        () => isRight(attempt),
        (right) => right,
      );
      const isRightCode = tried.outcome !== 'delayed' && tried.result;
      if (!isRightCode) {
        deps.audit.recordBounded({
          action: 'second_factor.check',
          target: { kind: 'user', name: attempt.user.name },
          result: 'refused',
          detail: { reason: tried.outcome === 'delayed' ? 'throttled' : 'wrong_code' },
        });
      }
      if (tried.outcome === 'delayed') return tried;
      return { outcome: isRightCode ? 'right' : 'wrong' };
    },

    async renewRecoveryCodes(userId) {
      const { codes, hashes } = newRecoveryCodes(userId);
      if (await recoveryCodes.replace(userId, hashes)) return codes;
      throw new HubError('not_found', text`You have no second factor.`);
    },

    isRequiredOf: (user) => rule.isRequiredOf(user),

    async removeCodes(user) {
      return store.delete(user.id, { mayBeLast: !(await rule.isRequiredOf(user)) });
    },

    async removeAll(userId) {
      await store.delete(userId, { mayBeLast: true });
      await passkeyStore.removeAllOfUser(userId);
    },
  };
}
