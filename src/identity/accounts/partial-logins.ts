import type { Keyv } from 'keyv';
import { hashSecret } from '../../platform/crypto/hash.ts';
import { randomSecret } from '../../platform/crypto/random.ts';
import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { LoggedIn } from '../authentication/login-service.ts';
import type { PasswordCredentialStore } from '../users/password-credential-store.ts';
import type { User, UserStore } from '../users/user-store.ts';
import type { SecondFactorRule } from './second-factor-rule.ts';
import type { SecondFactors } from './second-factors.ts';

/** What a login may still need after the right password, in this order. */
export type LoginStep = 'second-factor' | 'new-password' | 'set-up';

/** A login whose password was right and that still needs something. */
export interface PartialLogin {
  readonly userId: string;
  readonly authenticator: string;
  readonly identityId: string;
  readonly step: LoginStep;
  readonly mustChangePassword: boolean;
  /** As `LoggedIn` has it, before further steps. */
  readonly amr?: readonly string[];
  /** Tells the password from any other that replaces it meanwhile, with which the login ends. */
  readonly passwordTag: string;
  /** Where the login leads, already checked. */
  readonly next?: string;
}

/** What the browser does next, and the key to its login that it must bring. */
export interface NextLoginStep {
  readonly outcome: 'step';
  readonly step: LoginStep;
  readonly key: string;
}

export interface CompleteLogin {
  readonly outcome: 'complete';
  readonly result: LoggedIn;
  readonly next: string | undefined;
}

/**
 * Logins between their steps, kept in the hub for some minutes; a browser holds only the key to its own.
 * The second factor comes first: only who has it may choose a password. Where one is compulsory and there is none, its
 * set-up comes last; until then there is no session, and so nothing that could be done without it.
 */
export interface PartialLogins {
  /** What a login still needs; undefined when it is complete. Throws `forbidden` where no step could help. */
  nextStepOf(result: LoggedIn): Promise<LoginStep | undefined>;
  /** Keeps a login that still needs something; undefined when it is complete. */
  begin(result: LoggedIn, next: string | undefined): Promise<NextLoginStep | undefined>;
  /** The login of a key and its user, if it is at this step and its password is still that of the user. */
  find(
    key: string,
    step: LoginStep,
  ): Promise<{ readonly login: PartialLogin; readonly user: User } | undefined>;
  /** Ends a step. Of several who try at once one goes on, the others get undefined. */
  completeStep(key: string): Promise<NextLoginStep | CompleteLogin | undefined>;
  abandon(key: string): Promise<void>;
}

/** A user may have to find an authenticator app first. */
export const stepSeconds: Readonly<Record<LoginStep, number>> = {
  'second-factor': 300,
  'new-password': 300,
  'set-up': 900,
};

export function createPartialLogins(deps: {
  readonly records: Keyv<PartialLogin>;
  readonly users: Pick<UserStore, 'findById'>;
  readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  readonly secondFactors: Pick<SecondFactors, 'find'>;
  readonly secondFactorRule: Pick<SecondFactorRule, 'isRequiredOf' | 'isLeftTo'>;
  /** Name of the authenticator whose accounts have their password, and so their second factor, here. */
  readonly accountOwner: () => string | undefined;
}): PartialLogins {
  const { records, users, secondFactors, secondFactorRule: rule } = deps;

  const findRecord = (key: string) => records.get(hashSecret(key));

  async function passwordTagOf({ name }: Pick<User, 'name'>): Promise<string> {
    return hashSecret((await deps.credentials.findPasswordHash(name))?.passwordHash ?? '');
  }

  async function keep(
    user: Pick<User, 'name'>,
    login: Omit<PartialLogin, 'passwordTag'>,
  ): Promise<NextLoginStep> {
    const key = randomSecret();
    const kept: PartialLogin = { ...login, passwordTag: await passwordTagOf(user) };
    await records.set(hashSecret(key), kept, stepSeconds[login.step] * 1000);
    return { outcome: 'step', step: login.step, key };
  }

  async function take(key: string): Promise<PartialLogin | undefined> {
    const login = await findRecord(key);
    const isTaken = login !== undefined && (await records.delete(hashSecret(key)));
    return isTaken ? login : undefined;
  }

  async function nextStepOf({
    user,
    authenticator,
    mustChangePassword,
    isMultiFactor = false,
  }: LoggedIn): Promise<LoginStep | undefined> {
    if (authenticator !== deps.accountOwner()) {
      const isEnough = isMultiFactor || rule.isLeftTo(authenticator);
      if (isEnough || !(await rule.isRequiredOf(user))) return undefined;
      throw new HubError('forbidden', text`Your account needs a second factor.`, {
        hint: text`Where you logged in, none was asked for, or this hub was not told of it. Turn one on there and log in again, or ask an administrator.`,
      });
    }
    const hasFactor = (await secondFactors.find(user.id)) !== undefined;
    if (hasFactor && !isMultiFactor) return 'second-factor';
    if (mustChangePassword) return 'new-password';
    return hasFactor || !(await rule.isRequiredOf(user)) ? undefined : 'set-up';
  }

  return {
    nextStepOf,

    async begin(result, next) {
      const step = await nextStepOf(result);
      if (step === undefined) return undefined;
      const { user, authenticator, identityId, mustChangePassword, amr = [] } = result;
      return keep(user, {
        userId: user.id,
        authenticator,
        identityId,
        step,
        mustChangePassword,
        amr,
        ...(next === undefined ? {} : { next }),
      });
    },

    async find(key, step) {
      const login = await findRecord(key);
      const user = login?.step === step ? await users.findById(login.userId) : undefined;
      if (login === undefined || user === undefined || user.isSuspended) return undefined;
      return login.passwordTag === (await passwordTagOf(user)) ? { login, user } : undefined;
    },

    async completeStep(key) {
      const login = await take(key);
      const user = login && (await users.findById(login.userId));
      if (login === undefined || user === undefined || user.isSuspended) return undefined;
      const hasNewPassword = login.passwordTag !== (await passwordTagOf(user));
      if (hasNewPassword && login.step !== 'new-password') return undefined;
      if (login.step === 'second-factor' && login.mustChangePassword) {
        return keep(user, { ...login, amr: withFactor(login), step: 'new-password' });
      }
      const hasFactor = (await secondFactors.find(user.id)) !== undefined;
      if (!hasFactor && (await rule.isRequiredOf(user))) {
        return login.step === 'set-up' ? undefined : keep(user, { ...login, step: 'set-up' });
      }
      const { authenticator, identityId, next, step, amr = [] } = login;
      const result: LoggedIn = {
        outcome: 'logged_in',
        user,
        identityId,
        authenticator,
        mustChangePassword: false,
        amr: step === 'new-password' ? amr : withFactor(login),
      };
      return { outcome: 'complete', result, next };
    },

    async abandon(key) {
      await take(key);
    },
  };
}

/** The step was one in which a second factor was used, or set up and tried. */
function withFactor({ amr = [] }: PartialLogin): readonly string[] {
  return [...new Set([...amr, 'mfa'])];
}
