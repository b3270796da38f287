import type { Logger } from 'pino';
import { type Phrase, text } from '../../platform/texts/text.ts';
import type { FormMethod, LoginForm, LoginRequest } from '../../plugin/host/authenticator.ts';
import { isExternal, isForm, isRequest } from '../../plugin/host/login-kinds.ts';
import { type Authenticators, accountOwnerOf } from '../authentication/create-authenticators.ts';
import { loginLabels } from '../authentication/login-labels.ts';
import type { LoginService } from '../authentication/login-service.ts';
import type { Login } from '../sessions/login-sessions.ts';
import { type Passkeys, passkeyAnswerOf } from './passkeys.ts';
import type { SecondFactors } from './second-factors.ts';

/** A login, and when its user last showed who they are. */
export interface DatedLogin extends Login {
  readonly authenticatedAt: Date | undefined;
}

/** How a user can show again who they are: by what the login itself asked for last. */
export type Confirmation =
  /** Without an app, by a recovery code. */
  | { readonly kind: 'code'; readonly hasApp: boolean; readonly takesPasskey: boolean }
  | { readonly kind: 'passkey' }
  /** `ownsAccounts`: the name on the form is that of the user. */
  | {
      readonly kind: 'form';
      readonly authenticator: string;
      readonly method: FormMethod;
      readonly ownsAccounts: boolean;
    }
  | { readonly kind: 'external'; readonly authenticator: string; readonly provider: Phrase }
  /** Only a new login helps: the login method is none that can ask again. */
  | { readonly kind: 'none' };

export type ConfirmationResult =
  | { readonly outcome: 'confirmed' }
  | {
      readonly outcome: 'refused';
      readonly message: Phrase;
      /** Set after too many failures. */
      readonly retryAfterSeconds?: number;
    };

/** Whether a user showed lately who they are, which what outlives their login asks for. */
export interface RecentLogin {
  isRecent(login: DatedLogin, request: LoginRequest): Promise<boolean>;
  confirmationOf(login: Login): Promise<Confirmation>;
  /** Checks the fields of a confirmation of the kinds `code`, `passkey` and `form`. Counts as a login does. */
  check(
    login: Login,
    fields: LoginForm,
    request: LoginRequest,
    options: { readonly knownBrowserFor: (userName: string) => string | undefined },
  ): Promise<ConfirmationResult>;
}

export function createRecentLogin(deps: {
  /** `Authenticator.recent_login_seconds`; 0 counts every login as recent. */
  readonly maxAgeSeconds: number;
  readonly authenticators: Pick<Authenticators, 'list' | 'find'>;
  readonly loginService: Pick<LoginService, 'attemptLogin' | 'concludeLogin'>;
  readonly secondFactors: Pick<SecondFactors, 'find' | 'check'>;
  readonly passkeys: Pick<Passkeys, 'unusable' | 'check'>;
  readonly log: Logger;
  readonly now: () => number;
}): RecentLogin {
  const { authenticators, loginService, secondFactors, passkeys } = deps;

  /** A proxy that names the user in each request vouches for this one too, or it does not. */
  async function isNamedBy(login: Login, request: LoginRequest): Promise<boolean> {
    const { authenticator: name } = login.session;
    const via = authenticators.find(name)?.authenticator;
    if (via === undefined || !isRequest(via)) return false;
    const result = await via.identify(request);
    if (result.outcome === 'refused') return false;
    const admitted = await loginService.concludeLogin(result, name);
    return admitted.outcome === 'logged_in' && admitted.user.id === login.user.id;
  }

  async function confirmationOf({ session, user }: Login): Promise<Confirmation> {
    const { authenticator: name } = session;
    const via = authenticators.find(name)?.authenticator;
    if (via === undefined || isRequest(via)) return { kind: 'none' };
    if (isExternal(via)) {
      return { kind: 'external', authenticator: name, provider: loginLabels(via.login.label) };
    }
    const ownsAccounts = accountOwnerOf(authenticators)?.name === name;
    const factors = ownsAccounts ? await secondFactors.find(user.id) : undefined;
    if (factors !== undefined) {
      const { hasApp, passkeyCount, recoveryCodesLeft } = factors;
      const takesPasskey = passkeyCount > 0 && passkeys.unusable === undefined;
      if (!hasApp && recoveryCodesLeft === 0) return { kind: 'passkey' };
      return { kind: 'code', hasApp, takesPasskey };
    }
    if (!isForm(via)) return { kind: 'none' };
    return { kind: 'form', authenticator: name, method: via.login, ownsAccounts };
  }

  async function checkCode(
    { user }: Login,
    fields: LoginForm,
    { address }: LoginRequest,
  ): Promise<ConfirmationResult> {
    const result = await secondFactors.check({ user, address, code: fields.get('code') ?? '' });
    if (result.outcome === 'right') return { outcome: 'confirmed' };
    if (result.outcome === 'wrong') {
      return refused(text`This code is wrong, or it has been used already.`);
    }
    const { retryAfterSeconds } = result;
    return { ...refused(text`Too many wrong codes.`), retryAfterSeconds };
  }

  async function checkPasskey(
    { user, session }: Login,
    fields: LoginForm,
    { address }: LoginRequest,
  ): Promise<ConfirmationResult> {
    const answer = passkeyAnswerOf(fields, session.sessionId);
    const result = await passkeys.check('confirm', { ...answer, user, address });
    if (result.outcome === 'right') return { outcome: 'confirmed' };
    if (result.outcome === 'wrong') return refused(text`This passkey was not accepted. Try again.`);
    return { ...refused(text`Too many attempts.`), retryAfterSeconds: result.retryAfterSeconds };
  }

  return {
    confirmationOf,

    async isRecent(login, request) {
      if (deps.maxAgeSeconds === 0) return true;
      const { authenticatedAt } = login;
      const ageMs = deps.now() - (authenticatedAt?.getTime() ?? Number.NEGATIVE_INFINITY);
      return ageMs < deps.maxAgeSeconds * 1000 || (await isNamedBy(login, request));
    },

    async check(login, fields, request, options) {
      const confirmation = await confirmationOf(login);
      const hasPasskey = (fields.get('passkey_response') ?? '') !== '';
      if (confirmation.kind === 'passkey' || (confirmation.kind === 'code' && hasPasskey)) {
        return checkPasskey(login, fields, request);
      }
      if (confirmation.kind === 'code') return checkCode(login, fields, request);
      if (confirmation.kind !== 'form') return refused(text`Log out and log in again.`);
      const { authenticator, ownsAccounts } = confirmation;
      const form = new Map(fields);
      if (ownsAccounts) form.set('username', login.user.name);
      const result = await loginService.attemptLogin(authenticator, form, request, options);
      if (result.outcome === 'refused') {
        const { message, status, retryAfterSeconds } = result;
        if (retryAfterSeconds !== undefined) return { ...refused(message), retryAfterSeconds };
        return refused(ownsAccounts && status === 401 ? text`This is not your password.` : message);
      }
      if (result.user.id === login.user.id) return { outcome: 'confirmed' };
      deps.log.warn(
        { user: login.user.name, typed: result.user.name },
        'login confirmation by another user refused',
      );
      return refused(
        text`You are logged in as ${login.user.name}. Give the password of that account.`,
      );
    },
  };
}

function refused(message: Phrase) {
  return { outcome: 'refused', message } as const;
}
