import { HubError } from '../../../platform/errors.ts';
import { phraseIn, text } from '../../../platform/texts/text.ts';
import { deviceName } from '../elements/device.ts';
import type { BoundPages, Failure, ModelOf, Shown } from '../forms/binding.ts';
import { endsApiTokens, newPasswordProblems } from '../login/new-password-fields.ts';
import { accountPage, type PasswordSection, type ProfileSection } from './account-page.ts';
import { accountParameters, type TokenDeps, tokenRoutes, tokensIn } from './token-routes.ts';

const passwordPath = '/account/password';
const profilePath = '/account/profile';

/** `/hub/account`: the person's own password, linked identities, second factor, logins and tokens. */
export function accountRoutes(bound: BoundPages, deps: TokenDeps): void {
  const { page, form, pages } = bound;
  const { urls } = pages;
  const show = (shown: Shown<ModelOf<'viewOwnAccount'>>) => {
    const { layout, model, failure, language, ctx } = shown;
    const { password, passkeys } = model;
    return accountPage({
      ...model,
      layout,
      tokens: tokensIn(shown, bound, deps),
      profile: { ...model.profile, typed: typedIn(failure) },
      password: password && {
        rules: { minimumLength: password.minimumLength },
        tokens: {
          count: password.tokenCount,
          isChosen: endsApiTokens(failure?.path === passwordPath ? failure.sent : undefined),
        },
        problems: problemsIn(failure),
      },
      passkeys: passkeys && {
        ...passkeys,
        suggestedName: phraseIn(deviceName(ctx.get('User-Agent')), language),
      },
    });
  };
  const options = { query: accountParameters };
  const showAccount = page('/account', 'viewOwnAccount', show, options);

  form(profilePath, 'changeOwnProfile', {
    body: (sent) => ({ display_name: sent.get('display_name') ?? '' }),
    done: () => ({ to: urls.account, say: text`Your display name is saved.` }),
    again: showAccount,
  });

  form(passwordPath, 'changeOwnPassword', {
    check(sent) {
      const repeated = newPasswordProblems(sent, undefined)?.repeated;
      if (repeated === undefined) return;
      throw new HubError('bad_request', repeated, {
        field: { name: 'repeat_password', problem: repeated },
      });
    },
    body: (sent) => ({
      current_password: sent.get('current_password') ?? '',
      new_password: sent.get('new_password') ?? '',
      end_api_tokens: endsApiTokens(sent),
    }),
    done: ({ sent }) => ({
      to: urls.account,
      say: endsApiTokens(sent)
        ? text`Your password is changed. You are logged out everywhere else, and your API tokens have ended.`
        : text`Your password is changed. You are logged out everywhere else.`,
    }),
    again: showAccount,
  });

  form('/account/identities/unlink', 'unlinkOwnIdentity', {
    body: (sent) => ({ identity_id: sent.get('identity_id') ?? '' }),
    done: () => ({ to: urls.account, say: text`It is unlinked.` }),
  });

  form('/sessions/end', 'endSession', {
    params: (sent, { caller }) => ({ name: caller.owner.name, id: sent.get('session_id') ?? '' }),
    done: () => ({ to: urls.sessions, say: text`That login has ended.` }),
    isGone: () => ({ to: urls.sessions, say: text`This login has ended already.`, kind: 'bad' }),
  });

  form('/sessions/end-others', 'endSessions', {
    params: (_sent, { caller }) => ({ name: caller.owner.name }),
    query: () => ({ keep_current: '1' }),
    done: () => ({ to: urls.sessions, say: text`All your other logins have ended.` }),
  });

  tokenRoutes(bound, showAccount, deps);

  // Addresses that others link to; `/hub/token` is that of JupyterHub, with what fills in the form.
  for (const [path, section] of [
    ['/sessions', 'sessions'],
    ['/token', 'tokens'],
  ] as const) {
    const showSection = (shown: Shown<ModelOf<'viewOwnAccount'>>) =>
      pages.hasTyped(shown.ctx)
        ? show(shown)
        : { redirect: `${urls.account}${shown.ctx.search}#${section}` };
    page(path, 'viewOwnAccount', showSection, options);
  }
}

function typedIn(failure: Failure | undefined): ProfileSection['typed'] {
  if (failure?.path !== profilePath || failure.problem === undefined) return undefined;
  return { displayName: failure.sent.get('display_name') ?? '', problem: failure.problem };
}

function problemsIn(failure: Failure | undefined): PasswordSection['problems'] {
  if (failure?.path !== passwordPath) return undefined;
  const { field, problem } = failure;
  const at = (name: string) => (field?.name === name ? problem : undefined);
  return {
    current: at('current_password'),
    repeated: at('repeat_password'),
    password: at('new_password'),
  };
}
