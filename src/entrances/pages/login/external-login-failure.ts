import type { Context } from 'koa';
import type { Authenticators } from '../../../identity/authentication/create-authenticators.ts';
import type {
  ExternalLoginFailure,
  ExternalLoginFailureReason,
} from '../../../identity/authentication/external-logins.ts';
import type { Metrics } from '../../../platform/metrics/metrics.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import type { PageContext } from '../page-context.ts';
import { keepOpenerFor } from './keep-opener.ts';
import { loginFailedPage } from './login-failed-page.ts';

const beginAgain = text`Begin again. If that fails too, allow cookies for this site and use one browser throughout.`;

/** Answers and counts a login at an external provider that came to nothing. */
export async function showExternalLoginFailure(
  ctx: Context,
  failure: ExternalLoginFailure,
  deps: {
    readonly pages: PageContext;
    readonly authenticators: Pick<Authenticators, 'list'>;
    readonly metrics: Metrics;
  },
): Promise<void> {
  const { pages, authenticators, metrics } = deps;
  const { reason, status, request, provider = text`The login provider` } = failure;
  keepOpenerFor(ctx, pages.urls, request?.next);
  const { title, message, hint, counted } = failurePages[reason];
  if (request !== undefined && counted !== undefined) {
    metrics.countLogin(request.authenticator, counted);
  }
  const isLink = request?.linkToSession !== undefined;
  const isConfirmation = request?.confirmSession !== undefined;
  const retryUrl =
    request === undefined
      ? pages.urls.login
      : isConfirmation
        ? pages.urls.confirmLogin(request.next)
        : pages.urls.loginWith(request.authenticator, request.next);
  const hasOtherWays =
    !isLink && !isConfirmation && request !== undefined && authenticators.list.length > 1;
  const page = loginFailedPage({
    layout: await pages.layoutFor(ctx),
    title,
    message: failure.message ?? message(provider),
    hint,
    action: isLink
      ? { label: text`Back to your account`, url: pages.urls.account }
      : { label: text`Try again`, url: retryUrl },
    otherWays: hasOtherWays ? pages.urls.login : undefined,
  });
  pages.send(ctx, page, status);
}

/** The page of each failure, and how it counts as a login; `message` where the failure has none of its own. */
const failurePages: Readonly<
  Record<
    ExternalLoginFailureReason,
    {
      readonly title: Phrase;
      readonly message: (provider: Phrase) => Phrase;
      readonly hint: Phrase;
      readonly counted?: 'failed' | 'refused';
    }
  >
> = {
  state_missing: {
    title: text`This login cannot continue`,
    message: () => text`The login provider sent you back without saying which login this is about.`,
    hint: beginAgain,
  },
  state_unknown: {
    title: text`This login cannot continue`,
    message: () => text`This login was not begun in this browser, or it took too long.`,
    hint: beginAgain,
  },
  state_used: {
    title: text`This login cannot continue`,
    message: () => text`This login has been completed already. It works only once.`,
    hint: beginAgain,
  },
  other_callback: {
    title: text`This login cannot continue`,
    message: () => text`You came back from another login provider than the one you left for.`,
    hint: text`Do not use the provider you began with until your administrator has looked at it.`,
    counted: 'refused',
  },
  answer_missing: {
    title: text`This login cannot continue`,
    message: () => text`The login provider sent you back without an answer.`,
    hint: text`Try again. If this keeps happening, tell your administrator.`,
  },
  unavailable: {
    title: text`The login provider does not answer`,
    message: (provider) =>
      text`${provider} does not answer at the moment, so no one can log in with it.`,
    hint: text`Wait a little and try again. If this keeps happening, tell your administrator.`,
    counted: 'failed',
  },
  cancelled: {
    title: text`You did not log in`,
    message: () => text`The login was cancelled.`,
    hint: text`Nothing was shared. Try again if that was not what you wanted.`,
    counted: 'refused',
  },
  refused: {
    title: text`You could not be logged in`,
    message: () => text`You may not log in here.`,
    hint: text`If you think you should have access, ask your administrator.`,
    counted: 'refused',
  },
  link_session_ended: {
    title: text`The account was not linked`,
    message: () =>
      text`You are no longer logged in as the person this account was to be linked to.`,
    hint: text`Log in again, then link it from your account page.`,
  },
  confirm_session_ended: {
    title: text`The login has ended`,
    message: () => text`You are no longer logged in as the user who was to confirm the login.`,
    hint: text`Log in again, then repeat what you were about to do.`,
  },
  confirm_other_user: {
    title: text`This is another user`,
    message: (provider) => text`${provider} sent you back as another user of this hub.`,
    hint: text`You are still logged in as before. Try again with the account you are logged in with.`,
  },
  link_refused: {
    title: text`The account was not linked`,
    message: () => text`This account cannot be linked.`,
    hint: text`You are still logged in as before.`,
  },
};
