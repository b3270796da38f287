import type Router from '@koa/router';
import type { FirstAdministrator } from '../../accounts/first-administrator.ts';
import { HubError } from '../../errors.ts';
import type { PageKit } from '../page-kit.ts';
import { choosePasswordPage } from './choose-password-page.ts';

/** `/hub/set-up`: the one-time link with which the first administrator begins. */
export function setUpRoutes(
  router: Router,
  parts: {
    readonly kit: PageKit;
    readonly firstAdministrator: FirstAdministrator;
    readonly minimumPasswordLength: number;
  },
): void {
  const { kit, firstAdministrator } = parts;
  const rules = { minimumLength: parts.minimumPasswordLength };

  router.get('/set-up', async (ctx) => {
    const secret = String(ctx.query['secret'] ?? '');
    if (!(await firstAdministrator.isValid(secret))) {
      throw new HubError('forbidden', 'This set-up link does not work.', {
        hint: 'Start the hub again for a new link, or log in if there is an administrator already.',
      });
    }
    const frame = await kit.formFrame(ctx);
    kit.send(
      ctx,
      choosePasswordPage({ frame, purpose: { kind: 'first-administrator', secret }, rules }),
    );
  });

  router.post('/set-up', async (ctx) => {
    const form = await kit.readForm(ctx);
    const secret = form.get('secret') ?? '';
    const name = (form.get('name') ?? '').trim().toLowerCase();
    const password = form.get('new_password') ?? '';
    const repeats = form.get('repeat_password') ?? '';
    try {
      if (password !== repeats)
        throw new HubError('bad_request', 'The two passwords are not the same.');
      await firstAdministrator.create({ secret, name, password });
    } catch (error) {
      if (!(error instanceof HubError) || error.code !== 'bad_request') throw error;
      kit.send(
        ctx,
        choosePasswordPage({
          frame: await kit.formFrame(ctx),
          purpose: { kind: 'first-administrator', secret, name },
          rules,
          error: error.message,
        }),
        400,
      );
      return;
    }
    ctx.redirect(kit.urls.login);
    ctx.status = 303;
  });
}
