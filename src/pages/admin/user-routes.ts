import type { Context } from 'koa';
import type { Logger } from 'pino';
import type { Accounts } from '../../accounts/accounts.ts';
import type { ActingOnUsers } from '../../accounts/acting-on-users.ts';
import { type Invitations, invitationLifetimeSeconds } from '../../accounts/invitations.ts';
import type { SecondFactors } from '../../accounts/second-factors.ts';
import type { UserProfiles } from '../../accounts/user-profiles.ts';
import type { Authenticators } from '../../authentication/create-authenticators.ts';
import { loginWords } from '../../authentication/login-words.ts';
import { HubError } from '../../errors.ts';
import type { LoadReader } from '../../instances/load-reader.ts';
import { loadKeys } from '../../metrics/load-history.ts';
import type { ServerStore } from '../../servers/server-store.ts';
import type { UserServers } from '../../servers/user-servers.ts';
import type { LoginSessions } from '../../sessions/login-sessions.ts';
import { type Phrase, type Text, text, translated } from '../../texts/text.ts';
import type { IdentityStore } from '../../users/identity-store.ts';
import type { InvitationPurpose, InvitationStore } from '../../users/invitation-store.ts';
import type { PasswordCredentialStore } from '../../users/password-credential-store.ts';
import type { User, UserStore } from '../../users/user-store.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import { summaryOf, untouchedServer } from '../servers/server-views.ts';
import type { ShownOnce } from '../shown-once.ts';
import { type Admin, type AdminContext, parameter } from './admin-context.ts';
import { invitationLinksPage } from './new-users-page.ts';
import { type AdminProfile, adminUserPage } from './user-page.ts';
import { adminUserRightsRoutes, type UserRightsDeps, userRightsOf } from './user-rights-routes.ts';

interface AdminUserDeps {
  readonly users: UserStore;
  readonly accounts: Accounts;
  readonly acting: ActingOnUsers;
  readonly userProfiles: Pick<UserProfiles, 'read' | 'change'>;
  readonly rights: UserRightsDeps;
  readonly identities: Pick<IdentityStore, 'listForUser'>;
  readonly authenticators: Pick<Authenticators, 'find'>;
  readonly credentials: Pick<PasswordCredentialStore, 'findPasswordHash'>;
  readonly secondFactors: Pick<SecondFactors, 'find' | 'removeAll'>;
  readonly invitations: Invitations;
  readonly invitationStore: Pick<InvitationStore, 'listForUser'>;
  readonly logins: LoginSessions;
  /** A link that was made for one user, until the page that shows it. */
  readonly newLinks: ShownOnce<{ userName: string; purpose: InvitationPurpose; url: string }>;
  readonly serverStore: Pick<ServerStore, 'listOfUser'>;
  readonly servers: Pick<UserServers, 'prefixOf'>;
  readonly loads: Pick<LoadReader, 'readHere'>;
  readonly log: Logger;
}

/** `/hub/admin/users/:name`: everything about one user, and what can be done with the account. */
export function adminUserRoutes(admin: AdminContext, deps: AdminUserDeps): void {
  const { pages } = admin;
  const { users, accounts, logins, secondFactors, invitations } = deps;

  adminUserRightsRoutes(admin, deps.rights);

  /** The user of the address, once it is clear that the administrator may do this to them. */
  async function userFor(ctx: Context, who: Admin, scope: string): Promise<User> {
    const name = parameter(ctx, 'name');
    who.require(scope, { kind: 'user', name });
    return users.getByName(name);
  }

  function back(ctx: Context, user: User, told: Text): void {
    pages.redirectWithNotice(ctx, pages.urls.adminUser(user.name), { kind: 'good', text: told });
  }

  admin.get('/admin/users/:name', async (ctx, who) => {
    const user = await userFor(ctx, who, 'read:users');
    pages.send(ctx, adminUserPage(await viewOf(ctx, who, user, deps, admin)));
  });

  admin.post('/admin/users/:name/profile', async (ctx, who, form) => {
    const user = await userFor(ctx, who, 'admin:users');
    const displayName = form.get('display_name') ?? '';
    const email = form.get('email') ?? '';
    const pictureUrl = form.get('picture_url')?.trim();
    // What someone else has saved since the page was opened stays, unless it was typed over.
    const isChanged = (name: string, typed: string | undefined) =>
      typed !== undefined && typed !== (form.get(`shown_${name}`) ?? '');
    try {
      const change = {
        ...(isChanged('display_name', displayName) && { displayName }),
        ...(isChanged('email', email) && { email }),
        ...(isChanged('picture_url', pictureUrl) && {
          pictureUrl: pictureUrl === '' ? null : pictureUrl,
        }),
      };
      await deps.userProfiles.change(who.caller, user, change);
    } catch (error) {
      if (!(error instanceof HubError && error.code === 'bad_request')) throw error;
      const typed = {
        displayName,
        email,
        pictureUrl: pictureUrl ?? '',
        problem: translated(error.shown.message),
      };
      const view = await viewOf(ctx, who, user, deps, admin, typed);
      return pages.send(ctx, adminUserPage(view), 400);
    }
    back(ctx, user, text`Display name and e-mail address are saved.`);
  });

  admin.post('/admin/users/:name/admin', async (ctx, who, form) => {
    const user = await userFor(ctx, who, 'admin:users');
    const isAdmin = form.get('admin') === 'true';
    if (user.id === who.login.user.id) {
      throw new HubError('bad_request', text`You cannot take your own rights away.`, {
        hint: text`Another administrator can.`,
      });
    }
    await accounts.change(who.caller, user.name, { isAdmin });
    deps.log.info(
      { user: user.name, by: who.login.user.name, isAdmin },
      'changed an administrator',
    );
    back(
      ctx,
      user,
      isAdmin ? text`${user.name} is an administrator.` : text`The rights are taken away.`,
    );
  });

  async function askDeletion(ctx: Context, user: User, problem?: Phrase): Promise<void> {
    const page = confirmPage({
      layout: await pages.formLayoutFor(ctx),
      title: text`Delete ${user.name}?`,
      consequences: [
        text`The servers are stopped, the logins end, and all tokens stop working, at once.`,
        text`This cannot be undone. Files of the user stay where they are.`,
      ],
      label: text`Delete user`,
      action: pages.urls.adminUser(user.name, 'delete'),
      cancelUrl: pages.urls.adminUser(user.name),
      typeToConfirm: user.name,
      problem,
    });
    pages.send(ctx, page, problem === undefined ? 200 : 400);
  }

  admin.get('/admin/users/:name/delete', async (ctx, who) =>
    askDeletion(ctx, await userFor(ctx, who, 'delete:users')),
  );

  admin.post('/admin/users/:name/delete', async (ctx, who, form) => {
    const user = await userFor(ctx, who, 'delete:users');
    if (form.get('confirmation')?.normalize('NFC').trim() !== user.name) {
      return askDeletion(ctx, user, text`This is not the name of the user.`);
    }
    await accounts.delete(who.caller, user.name);
    deps.log.info({ user: user.name, by: who.login.user.name }, 'deleted a user');
    pages.redirectWithNotice(ctx, pages.urls.admin, {
      kind: 'good',
      text: text`${user.name} is deleted.`,
    });
  });

  admin.post('/admin/users/:name/invitation', async (ctx, who) => {
    const { name } = await userFor(ctx, who, 'admin:users');
    const { user, purpose, url } = await invitations.create(who.caller, name);
    deps.log.info({ user: name, by: who.login.user.name, purpose }, 'made a link');
    // Shown by the page that follows, so that loading it again makes no other link, which would end this one.
    deps.newLinks.keep(ctx, { userName: user.name, purpose, url });
    ctx.redirect(pages.urls.adminUser(user.name, 'link'));
    ctx.status = 303;
  });

  admin.get('/admin/users/:name/link', async (ctx, who) => {
    const { name } = await userFor(ctx, who, 'admin:users');
    const made = deps.newLinks.take(ctx);
    if (made?.userName !== name) return ctx.redirect(pages.urls.adminUser(name));
    const page = invitationLinksPage({
      layout: await pages.formLayoutFor(ctx),
      purpose: made.purpose === 'invitation' ? 'invitation' : 'reset',
      links: [made],
      lifetimeSeconds: invitationLifetimeSeconds[made.purpose],
    });
    pages.send(ctx, page);
  });

  admin.post(
    '/admin/users/:name/end-session',
    async (ctx, who, form) => {
      const user = await userFor(ctx, who, 'tokens');
      await deps.acting.requireMayActOn(who.caller, user, ['tokens']);
      const sessions = await logins.listOfUser(user.id);
      const session = sessions.find(({ sessionId }) => sessionId === form.get('session_id'));
      if (session === undefined)
        throw new HubError('not_found', text`This login has ended already.`);
      await logins.end(session.sessionId);
      back(ctx, user, text`That login has ended.`);
    },
    { needsRecentLogin: false },
  );

  admin.post(
    '/admin/users/:name/end-sessions',
    async (ctx, who) => {
      const user = await userFor(ctx, who, 'tokens');
      await deps.acting.requireMayActOn(who.caller, user, ['tokens']);
      const isSelf = user.id === who.login.user.id;
      await logins.endAllOfUser(user.id, isSelf ? { except: who.login.session.sessionId } : {});
      back(ctx, user, isSelf ? text`Your other logins have ended.` : text`All logins have ended.`);
    },
    { needsRecentLogin: false },
  );

  admin.post('/admin/users/:name/remove-second-factor', async (ctx, who) => {
    const user = await userFor(ctx, who, 'admin:users');
    if (user.id === who.login.user.id) {
      throw new HubError(
        'bad_request',
        text`Turn your own second factor off, and remove your passkeys, on your account page.`,
      );
    }
    await deps.acting.requireMayTakeOver(who.caller, user);
    await secondFactors.removeAll(user.id);
    // Whoever has what was lost may be logged in with it.
    await logins.endAllOfUser(user.id);
    deps.log.warn(
      { user: user.name, by: who.login.user.name },
      'removed the second factor and passkeys',
    );
    back(
      ctx,
      user,
      text`${user.name} logs in by password alone until a new second factor is set up.`,
    );
  });
}

/** What the page shows; what the administrator may not read is left out. */
async function viewOf(
  ctx: Context,
  who: Admin,
  user: User,
  deps: AdminUserDeps,
  { pages }: AdminContext,
  typed?: AdminProfile['typed'],
) {
  const { credentials, invitations, secondFactors, servers } = deps;
  const resource = { kind: 'user', name: user.name } as const;
  const may = (scope: string) => who.may(scope, resource);
  const mayChange = may('admin:users');
  const [profile, rights, identities, own, sessions, credential, factor, open] = await Promise.all([
    may('read:users:info') ? deps.userProfiles.read(user) : undefined,
    userRightsOf(who, user, deps.rights),
    mayChange ? deps.identities.listForUser(user.id) : [],
    may('read:servers') ? deps.serverStore.listOfUser(user.name) : [],
    may('read:tokens') ? deps.logins.listOfUser(user.id) : [],
    credentials.findPasswordHash(user.name),
    secondFactors.find(user.id),
    deps.invitationStore.listForUser(user.id, new Date()),
  ]);
  const summaries = own.map((server) =>
    summaryOf(
      server,
      pages.urlOf(servers.prefixOf(server)),
      deps.loads.readHere(loadKeys.server(server.id)),
    ),
  );
  const hasDefault = summaries.some(({ name }) => name === '');
  const untouched = untouchedServer(
    user.name,
    pages.urlOf(servers.prefixOf({ userName: user.name, name: '' })),
  );
  const passwordState =
    credential === undefined ? 'none' : credential.mustChange ? 'must-change' : 'set';
  return {
    layout: await pages.formLayoutFor(ctx),
    user: {
      name: user.name,
      isAdmin: user.isAdmin,
      isInvited: open.some(({ purpose }) => purpose === 'invitation'),
      createdAt: user.createdAt,
      lastActivityAt: user.lastActivityAt,
      systemAccount: mayChange ? user.systemAccount : undefined,
    },
    profile: profile && {
      ...profile.info,
      toldBy: profile.toldBy,
      shownPictureUrl: profile.shownPictureUrl,
      typed,
    },
    rights,
    identities: identities.flatMap(({ authenticator, display, subject }) => {
      const via = deps.authenticators.find(authenticator)?.authenticator;
      if (via?.ownsAccounts === true) return [];
      return [
        {
          label: via === undefined ? authenticator : loginWords(via.login.label),
          display: display ?? subject,
        },
      ];
    }),
    servers: may('read:servers') && !hasDefault ? [untouched, ...summaries] : summaries,
    sessions: sessions.map((session) => ({
      ...session,
      isCurrent: session.sessionId === who.login.session.sessionId,
    })),
    password: mayChange && invitations.isUsed ? (passwordState as typeof passwordState) : undefined,
    hasSecondFactor: factor !== undefined,
    isSelf: user.id === who.login.user.id,
    may: { change: mayChange, delete: may('delete:users'), endSessions: may('tokens') },
  };
}
