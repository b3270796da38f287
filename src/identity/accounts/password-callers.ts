import { identifyActor } from '../../platform/audit/actor.ts';
import { HubError } from '../../platform/errors.ts';
import type { Metrics } from '../../platform/metrics/metrics.ts';
import type { LoginForm, LoginRequest } from '../../plugin/host/authenticator.ts';
import { isForm } from '../../plugin/host/login-kinds.ts';
import type { Authenticators } from '../authentication/create-authenticators.ts';
import type { LoginService } from '../authentication/login-service.ts';
import type { Caller } from '../rbac/access-check.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { LoginStep, PartialLogins } from './partial-logins.ts';

/** Programs that send a user name and a password in place of a token. */
export interface PasswordCallers {
  /**
   * The user of a name and password as a caller, without a session. Counts as a login does. Throws
   * `forbidden` for what the login page would not let in at once, and `too_many_requests`.
   */
  identify(
    fields: LoginForm,
    request: LoginRequest,
    /** Name of the login method; the first that takes a form, unless given. */
    authenticatorName?: string,
  ): Promise<Caller>;
}

export function createPasswordCallers(deps: {
  readonly authenticators: Pick<Authenticators, 'list'>;
  readonly loginService: Pick<LoginService, 'attemptLogin'>;
  readonly partialLogins: Pick<PartialLogins, 'nextStepOf'>;
  readonly authorizer: Pick<Authorizer, 'scopesOfOwner'>;
  readonly metrics: Pick<Metrics, 'countLogin'>;
}): PasswordCallers {
  return {
    async identify(fields, request, authenticatorName) {
      const via = deps.authenticators.list.find(
        ({ name, authenticator }) =>
          isForm(authenticator) && (authenticatorName === undefined || authenticatorName === name),
      )?.name;
      if (via === undefined) throw noPasswords(authenticatorName);
      const result = await deps.loginService.attemptLogin(via, fields, request);
      if (result.outcome === 'refused') {
        const { status, message, retryAfterSeconds } = result;
        deps.metrics.countLogin(via, status === 429 ? 'throttled' : 'refused');
        throw new HubError(status === 429 ? 'too_many_requests' : 'forbidden', message, {
          ...(retryAfterSeconds !== undefined && {
            retryAfterSeconds: Math.ceil(retryAfterSeconds),
          }),
        });
      }
      const step = await deps.partialLogins.nextStepOf(result);
      if (step !== undefined) {
        deps.metrics.countLogin(via, 'refused');
        throw new HubError('forbidden', whyNotAtOnce[step], {
          hint: 'Log in with a browser, and make a token on the token page.',
        });
      }
      const { user } = result;
      const owner = { kind: 'user', name: user.name } as const;
      identifyActor(owner);
      deps.metrics.countLogin(via, 'logged_in');
      return { owner, user, scopes: await deps.authorizer.scopesOfOwner(owner) };
    },
  };
}

const whyNotAtOnce: Readonly<Record<LoginStep, string>> = {
  'second-factor': 'This account has a second factor: its password alone makes no token.',
  'new-password': 'This password must be changed first.',
  'set-up': 'This account needs a second factor, which is yet to be set up.',
};

function noPasswords(name: string | undefined): HubError {
  const what = name === undefined ? 'No login method of this hub' : 'No login method of this name';
  return new HubError('forbidden', `${what} takes a user name and a password.`, {
    hint: 'Send a token, which users make on the token page.',
  });
}
