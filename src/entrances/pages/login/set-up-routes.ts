import type Router from '@koa/router';
import type { FirstAdministrator } from '../../../identity/accounts/first-administrator.ts';
import type { AccountPasswords } from '../../../identity/authentication/account-passwords.ts';
import {
  type Authenticators,
  accountOwnerOf,
} from '../../../identity/authentication/create-authenticators.ts';
import type { LoginService } from '../../../identity/authentication/login-service.ts';
import type { User } from '../../../identity/users/user-store.ts';
import { HubError } from '../../../platform/errors.ts';
import { hubCommand } from '../../../platform/files/program-folder.ts';
import { text } from '../../../platform/texts/text.ts';
import type { PageContext } from '../page-context.ts';
import { choosePasswordPage } from './choose-password-page.ts';
import type { LogIn } from './log-in.ts';

/** `/hub/set-up`: the one-time link with which the first administrator begins. */
export function setUpRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly firstAdministrator: FirstAdministrator;
    readonly passwords: Pick<AccountPasswords, 'minimumLength'>;
    readonly loginService: Pick<LoginService, 'admitUser'>;
    readonly authenticators: Pick<Authenticators, 'list'>;
    readonly logIn: Pick<LogIn, 'logIn'>;
  },
): void {
  const { pages, firstAdministrator, passwords } = deps;

  router.get('/set-up', async (ctx) => {
    const secret = String(ctx.query['secret'] ?? '');
    if (!(await firstAdministrator.isValid(secret))) {
      throw new HubError('forbidden', text`This set-up link does not work.`, {
        hint: text`Log in if there is an administrator already; else ${hubCommand('setup-link')} makes a new link.`,
      });
    }
    const layout = await pages.formLayoutFor(ctx);
    pages.send(
      ctx,
      choosePasswordPage({
        layout,
        purpose: { kind: 'first-administrator', secret },
        rules: { minimumLength: passwords.minimumLength },
      }),
    );
  });

  router.post('/set-up', async (ctx) => {
    const form = await pages.readForm(ctx);
    const secret = form.get('secret') ?? '';
    const name = form.get('name') ?? '';
    const password = form.get('new_password') ?? '';
    const repeats = form.get('repeat_password') ?? '';
    let user: User;
    try {
      if (password !== repeats) throw new HubError('bad_request', text`The passwords don’t match.`);
      user = await firstAdministrator.create({ secret, name, password });
    } catch (error) {
      if (!(error instanceof HubError) || error.code !== 'bad_request') throw error;
      pages.send(
        ctx,
        choosePasswordPage({
          layout: await pages.formLayoutFor(ctx),
          purpose: { kind: 'first-administrator', secret, name },
          rules: { minimumLength: passwords.minimumLength },
          error: error.shown.message,
        }),
        400,
      );
      return;
    }
    const via = accountOwnerOf(deps.authenticators)?.name ?? '';
    const result = await deps.loginService.admitUser({ name: user.name, issuer: via }, via);
    if (result.outcome === 'refused') throw new HubError('forbidden', result.message);
    // The first steps of a new hub are on the home page, wherever other logins lead.
    await deps.logIn.logIn(ctx, result, pages.urls.home);
  });
}
