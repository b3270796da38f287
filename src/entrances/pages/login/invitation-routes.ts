import type Router from '@koa/router';
import type { Context } from 'koa';
import { type Invitations, usedUp } from '../../../identity/accounts/invitations.ts';
import type { AccountPasswords } from '../../../identity/authentication/account-passwords.ts';
import {
  type Authenticators,
  accountOwnerOf,
} from '../../../identity/authentication/create-authenticators.ts';
import type { LoginService } from '../../../identity/authentication/login-service.ts';
import { HubError } from '../../../platform/errors.ts';
import { text } from '../../../platform/texts/text.ts';
import type { PageContext } from '../page-context.ts';
import { type ChoosePasswordView, choosePasswordPage } from './choose-password-page.ts';
import type { LogIn } from './log-in.ts';
import { endsApiTokens } from './new-password-fields.ts';

/** `/hub/invitation`: what an invitation or a password-reset link opens. */
export function invitationRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly invitations: Invitations;
    readonly loginService: Pick<LoginService, 'admitUser'>;
    readonly authenticators: Pick<Authenticators, 'list'>;
    readonly passwords: Pick<AccountPasswords, 'minimumLength' | 'apiTokenCount'>;
    readonly logIn: LogIn;
  },
): void {
  const { pages, invitations } = deps;

  async function show(
    ctx: Context,
    secret: string,
    failure?: {
      readonly form: URLSearchParams;
      readonly problems: ChoosePasswordView['problems'];
    },
  ): Promise<void> {
    const found = await invitations.find(secret);
    if (found === undefined) throw usedUp();
    const { invitation, user } = found;
    const isReset = invitation.purpose === 'password_reset';
    const page = choosePasswordPage({
      layout: await pages.formLayoutFor(ctx),
      purpose: {
        kind: isReset ? 'reset' : 'invitation',
        secret,
        userName: user.name,
        ...(isReset ? {} : { invitedBy: invitation.createdBy }),
      },
      rules: { minimumLength: deps.passwords.minimumLength },
      tokens: {
        count: await deps.passwords.apiTokenCount(user.id),
        isChosen: endsApiTokens(failure?.form),
      },
      problems: failure?.problems,
    });
    pages.send(ctx, page, failure === undefined ? 200 : 400);
  }

  router.get('/invitation', async (ctx) => {
    const { secret } = ctx.query;
    await show(ctx, typeof secret === 'string' ? secret : '');
  });

  router.post('/invitation', async (ctx) => {
    const form = await pages.readForm(ctx);
    const secret = form.get('secret') ?? '';
    if (form.get('new_password') !== form.get('repeat_password')) {
      const repeated = text`The passwords don’t match.`;
      return show(ctx, secret, { form, problems: { repeated } });
    }
    let name: string;
    try {
      ({ name } = await invitations.accept(secret, form.get('new_password') ?? '', {
        endsApiTokens: endsApiTokens(form),
      }));
    } catch (error) {
      if (!(error instanceof HubError) || error.code !== 'bad_request') throw error;
      return show(ctx, secret, { form, problems: { password: error.shown.message } });
    }
    // Rules about who may log in hold for those who were invited, too.
    const via = accountOwnerOf(deps.authenticators)?.name ?? '';
    const result = await deps.loginService.admitUser({ name, issuer: via }, via);
    if (result.outcome === 'refused') throw new HubError('forbidden', result.message);
    await deps.logIn.logIn(ctx, result, undefined);
  });
}
