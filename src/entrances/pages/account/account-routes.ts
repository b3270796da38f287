import { HubError } from '../../../platform/errors.ts';
import { phraseIn, text } from '../../../platform/texts/text.ts';
import { deviceName } from '../elements/device.ts';
import type { BoundPages, Failure } from '../forms/binding.ts';
import { endsApiTokens, newPasswordProblems } from '../login/new-password-fields.ts';
import { accountPage, type PasswordSection, type ProfileSection } from './account-page.ts';

const passwordPath = '/account/password';
const profilePath = '/account/profile';

/** `/hub/account`: the person's own password, linked identities, second factor. */
export function accountRoutes({ page, form, pages: { urls } }: BoundPages): void {
  const showAccount = page('/account', 'viewOwnAccount', (shown) => {
    const { layout, model, failure, language, ctx } = shown;
    const { password, passkeys } = model;
    return accountPage({
      ...model,
      layout,
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
  });

  form(profilePath, 'changeOwnProfile', {
    body: (sent) => ({ display_name: sent.get('display_name') ?? '' }),
    done: () => ({ to: urls.account, say: text`Your display name is saved.` }),
    again: showAccount,
  });

  form(passwordPath, 'changeOwnPassword', {
    check(sent) {
      const repeated = newPasswordProblems(sent, undefined)?.repeated;
      if (repeated === undefined) return;
      throw new HubError('bad_request', repeated, { details: { field: 'repeat_password' } });
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
}

function typedIn(failure: Failure | undefined): ProfileSection['typed'] {
  if (failure?.path !== profilePath || failure.problem === undefined) return undefined;
  return { displayName: failure.sent.get('display_name') ?? '', problem: failure.problem };
}

function problemsIn(failure: Failure | undefined): PasswordSection['problems'] {
  if (failure?.path !== passwordPath) return undefined;
  const { field, problem } = failure;
  return {
    current: field === 'current_password' ? problem : undefined,
    repeated: field === 'repeat_password' ? problem : undefined,
    password: field === 'new_password' ? problem : undefined,
  };
}
