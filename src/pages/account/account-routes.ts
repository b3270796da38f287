import type Router from '@koa/router';
import type { Context } from 'koa';
import type { IdentityLinks } from '../../accounts/identity-links.ts';
import type { Passkeys } from '../../accounts/passkeys.ts';
import type { SecondFactors } from '../../accounts/second-factors.ts';
import type { UserProfiles } from '../../accounts/user-profiles.ts';
import type { AccountPasswords } from '../../authentication/account-passwords.ts';
import type { Authenticators } from '../../authentication/create-authenticators.ts';
import type { LoginThrottle } from '../../authentication/login-throttle.ts';
import { loginWords } from '../../authentication/login-words.ts';
import { HubError } from '../../errors.ts';
import type { ClientAddress } from '../../http/client-address.ts';
import type { PasswordHasher } from '../../plugin-host/authenticator.ts';
import { isExternal } from '../../plugin-host/login-kinds.ts';
import type { Login } from '../../sessions/login-sessions.ts';
import type { AuditStore } from '../../store/audit-store.ts';
import { phraseIn, text, translated } from '../../texts/text.ts';
import type { GroupStore } from '../../users/group-store.ts';
import type { PasswordCredentialStore } from '../../users/password-credential-store.ts';
import { deviceName } from '../elements/device.ts';
import type { ConfirmLogin } from '../login/confirm-login.ts';
import { endsApiTokens, newPasswordProblems } from '../login/new-password-fields.ts';
import type { PageContext } from '../page-context.ts';
import { accountPage, type PasswordSection, type ProfileSection } from './account-page.ts';

const shownEntries = 10;

/** `/hub/account`: the person's own password, linked identities, second factor. */
export function accountRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly confirmLogin: ConfirmLogin;
    readonly groups: Pick<GroupStore, 'groupNamesOf'>;
    readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
    readonly passwords: AccountPasswords;
    readonly passwordHasher: PasswordHasher;
    readonly throttle: LoginThrottle;
    readonly secondFactors: Pick<SecondFactors, 'find' | 'isRequiredOf'>;
    readonly passkeys: Pick<Passkeys, 'unusable' | 'listOf'>;
    readonly identityLinks: IdentityLinks;
    readonly userProfiles: Pick<UserProfiles, 'read' | 'changeOwn'>;
    readonly authenticators: Pick<Authenticators, 'list'>;
    readonly auditLog: Pick<AuditStore, 'list'>;
  },
): void {
  const { pages, confirmLogin, passwords, secondFactors, identityLinks, userProfiles } = deps;

  async function show(
    ctx: Context,
    { user }: Login,
    failure?: {
      readonly form?: URLSearchParams;
      readonly problems?: PasswordSection['problems'];
      readonly profile?: ProfileSection['typed'];
      readonly status?: number;
    },
  ): Promise<void> {
    const credential = passwords.isUsed
      ? await deps.credentials.findPasswordHash(user.name)
      : undefined;
    const links = await identityLinks.listOf(user);
    const { entries: activity } = await deps.auditLog.list({
      filter: { target: user.name },
      limit: shownEntries,
    });
    const factor = credential && (await secondFactors.find(user.id));
    const isRequired = await secondFactors.isRequiredOf(user);
    const { info, toldBy, shownPictureUrl } = await userProfiles.read(user);
    const page = accountPage({
      layout: await pages.formLayoutFor(ctx),
      userName: user.name,
      groups: await deps.groups.groupNamesOf(user.name),
      profile: {
        displayName: info.displayName,
        email: info.email,
        shownPictureUrl,
        toldBy,
        typed: failure?.profile,
      },
      password: credential && {
        rules: { minimumLength: passwords.minimumLength },
        tokens: {
          count: await passwords.apiTokenCount(user.id),
          isChosen: endsApiTokens(failure?.form),
        },
        problems: failure?.problems,
      },
      identities: links.map(({ id, label, display, subject, createdAt, mayUnlink }) => ({
        id,
        label,
        display: display ?? subject,
        linkedAt: createdAt,
        mayUnlink,
      })),
      linkable: deps.authenticators.list
        .filter(({ authenticator }) => isExternal(authenticator))
        .filter(({ name }) => !links.some(({ authenticator }) => authenticator === name))
        .map(({ name, authenticator }) => ({
          authenticator: name,
          label: loginWords(authenticator.login.label),
        })),
      secondFactor: credential && {
        isOn: factor?.hasApp ?? false,
        isRequired: isRequired && factor?.passkeyCount === 0,
        recoveryCodesLeft: factor?.recoveryCodesLeft,
      },
      passkeys: credential && {
        unusable: deps.passkeys.unusable,
        passkeys: (await deps.passkeys.listOf(user.id)).map((passkey) => ({
          ...passkey,
          mayRemove: !isRequired || factor?.hasApp || factor?.passkeyCount !== 1,
        })),
        suggestedName: phraseIn(deviceName(ctx.get('User-Agent')), pages.languageOf(ctx)),
      },
      activity,
    });
    pages.send(ctx, page, failure === undefined ? 200 : (failure.status ?? 400));
  }

  router.get(
    '/account',
    pages.loggedIn((ctx, login) => show(ctx, login)),
  );

  router.post(
    '/account/profile',
    pages.loggedIn(async (ctx, login) => {
      const displayName = (await pages.readForm(ctx)).get('display_name') ?? '';
      try {
        await userProfiles.changeOwn(login.user, { displayName });
      } catch (error) {
        if (!(error instanceof HubError && error.code === 'bad_request')) throw error;
        return show(ctx, login, {
          profile: { displayName, problem: translated(error.shown.message) },
        });
      }
      pages.redirectWithNotice(ctx, pages.urls.account, {
        kind: 'good',
        text: text`Your display name is saved.`,
      });
    }),
  );

  router.post(
    '/account/password',
    pages.loggedIn(async (ctx, login) => {
      const { user, session } = login;
      // The form asks for the password itself, which is all that a login needs without a second factor.
      const hasFactor = (await secondFactors.find(user.id)) !== undefined;
      const form = await confirmLogin.readForm(ctx, login, () => hasFactor);
      if (form === undefined) return;
      const password = form.get('new_password') ?? '';
      const current = form.get('current_password') ?? '';
      const problems = newPasswordProblems(form, passwords.problemWith(password, user.name));
      if (problems !== undefined) return show(ctx, login, { form, problems });
      if (current === password) {
        const same = { password: text`This is the password you have now.` };
        return show(ctx, login, { form, problems: same });
      }
      const { address } = ctx.state['client'] as ClientAddress;
      // Guessing here is guessing at the login: it counts there, so that neither helps the other.
      const tried = await deps.throttle.attempt(
        { userName: user.name, address },
        async () => {
          const credential = await deps.credentials.findPasswordHash(user.name);
          return deps.passwordHasher.verify(current, credential?.passwordHash);
        },
        ({ matches }) => (matches ? 'success' : 'failure'),
      );
      if (tried.outcome === 'delayed') {
        ctx.set('Retry-After', String(tried.retryAfterSeconds));
        const current = text`Too many wrong passwords. Wait a while, then try again.`;
        return show(ctx, login, { form, problems: { current }, status: 429 });
      }
      if (!tried.result.matches) {
        const wrong = { current: text`This is not your password.` };
        return show(ctx, login, { form, problems: wrong, status: 403 });
      }
      const endsTokens = endsApiTokens(form);
      await passwords.set(user, password, {
        keepSessionId: session.sessionId,
        endsApiTokens: endsTokens,
      });
      pages.redirectWithNotice(ctx, pages.urls.account, {
        kind: 'good',
        text: endsTokens
          ? text`Your password is changed. You are logged out everywhere else, and your API tokens have ended.`
          : text`Your password is changed. You are logged out everywhere else.`,
      });
    }),
  );

  router.post(
    '/account/identities/unlink',
    confirmLogin.change(async (ctx, { user, session }, form) => {
      const keepSessionId = session.sessionId;
      await identityLinks.unlink(user, form.get('identity_id') ?? '', { keepSessionId });
      pages.redirectWithNotice(ctx, pages.urls.account, {
        kind: 'good',
        text: text`It is unlinked.`,
      });
    }),
  );
}
