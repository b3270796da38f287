import { invitationLifetimeSeconds } from '../../../identity/accounts/invitations.ts';
import { loginLabels } from '../../../identity/authentication/login-labels.ts';
import { runtimeOrigin } from '../../../identity/rbac/role-change-store.ts';
import type { InvitationPurpose } from '../../../identity/users/invitation-store.ts';
import { HubError } from '../../../platform/errors.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { clientTitle } from '../account/client-title.ts';
import { confirmPage } from '../errors/confirm-page.ts';
import type { BoundPages, Failure, ModelOf, Shown } from '../forms/binding.ts';
import { bindDeletion } from '../forms/deletion.ts';
import { summaryOf, untouchedServer } from '../servers/server-views.ts';
import type { ShownOnce } from '../shown-once.ts';
import { invitationLinksPage } from './new-users-page.ts';
import { removalNotice } from './removed-member.ts';
import { type AdminUserView, adminUserPage } from './user-page.ts';
import type { UserToken } from './user-rights.ts';

/** `/hub/admin/users/{name}`: everything about one user, and what can be done with the account. */
export function adminUserRoutes(
  bound: BoundPages,
  {
    newLinks,
  }: {
    /** A link that was made for one user, until the page that shows it. */
    readonly newLinks: ShownOnce<{ userName: string; purpose: InvitationPurpose; url: string }>;
  },
): void {
  const { page, form } = bound;
  const { urls } = bound.pages;
  const toUser = (params: Readonly<Record<string, string>>) => urls.adminUser(params['name'] ?? '');

  const showUser = page('/admin/users/{name}', 'viewUser', (shown) =>
    adminUserPage(viewOf(shown, bound.pages)),
  );

  form('/admin/users/{name}/profile', 'changeUser', {
    body: (sent) => ({ user_info: changedInfo(sent) }),
    done: ({ params }) => ({
      to: toUser(params),
      say: text`Display name and e-mail address are saved.`,
    }),
    again: showUser,
  });

  page('/admin/users/{name}/admin', 'viewNewAdministrator', ({ layout, model: { name } }) =>
    confirmPage({
      layout,
      title: text`Make ${name} an administrator?`,
      consequences: [
        text`Administrators may do everything on this hub: read and delete all users, and use their servers.`,
      ],
      label: text`Make administrator`,
      action: urls.adminUser(name, 'admin'),
      cancelUrl: urls.adminUser(name),
      fields: { admin: 'true' },
    }),
  );

  form('/admin/users/{name}/admin', 'changeUser', {
    body: (sent) => ({ admin: sent.get('admin') === 'true' }),
    done: ({ params, sent }) => ({
      to: toUser(params),
      say:
        sent.get('admin') === 'true'
          ? text`${params['name'] ?? ''} is an administrator.`
          : text`The rights are taken away.`,
    }),
  });

  form('/admin/users/{name}/suspend', 'suspendUser', {
    done: ({ params }) => ({
      to: toUser(params),
      say: text`${params['name'] ?? ''} is suspended.`,
    }),
  });

  form('/admin/users/{name}/unsuspend', 'unsuspendUser', {
    done: ({ params }) => ({ to: toUser(params), say: text`The suspension has ended.` }),
  });

  bindDeletion(bound, '/admin/users/{name}/delete', {
    view: 'viewUserDeletion',
    operation: 'deleteUser',
    question: ({ name, hasConfiguredRights }) => ({
      title: text`Delete ${name}?`,
      consequences: [
        text`The servers are stopped, the logins end, and all tokens stop working, at once.`,
        text`This cannot be undone. Files of the user stay where they are.`,
        ...(hasConfiguredRights
          ? [
              text`The configuration still gives rights to this name: the next start or reload makes the account again.`,
            ]
          : []),
      ],
      label: text`Delete user`,
      action: urls.adminUser(name, 'delete'),
      cancelUrl: urls.adminUser(name),
      typeToConfirm: name,
    }),
    check(sent, { name = '' }) {
      if (sent.get('confirmation')?.normalize('NFC').trim() === name) return;
      const problem = text`This is not the name of the user.`;
      throw new HubError('bad_request', problem, { field: { name: 'confirmation', problem } });
    },
    done: ({ name = '' }) => ({ to: urls.adminUsers, say: text`${name} is deleted.` }),
  });

  form('/admin/users/{name}/invitation', 'createInvitation', {
    done({ ctx, result: { user, purpose, url } }) {
      // Shown by the page that follows, so that loading it again makes no other link, which would end this one.
      newLinks.keep(ctx, { userName: user, purpose: purpose as InvitationPurpose, url });
      return { redirect: urls.adminUser(user, 'link') };
    },
  });

  page('/admin/users/{name}/link', 'viewNewLink', ({ layout, model: { name }, ctx }) => {
    const made = newLinks.take(ctx);
    if (made?.userName !== name) return { redirect: urls.adminUser(name) };
    return invitationLinksPage({
      layout,
      purpose: made.purpose === 'invitation' ? 'invitation' : 'reset',
      links: [made],
      lifetimeSeconds: invitationLifetimeSeconds[made.purpose],
    });
  });

  form('/admin/users/{name}/end-session', 'endSession', {
    params: (sent) => ({ id: sent.get('session_id') ?? '' }),
    done: ({ params }) => ({ to: toUser(params), say: text`That login has ended.` }),
    isGone: (_sent, params) => ({
      to: toUser(params),
      say: text`This login has ended already.`,
      kind: 'bad',
    }),
  });

  form('/admin/users/{name}/end-sessions', 'endSessions', {
    query: () => ({ keep_current: '1' }),
    done: ({ params, visitor }) => ({
      to: toUser(params),
      say:
        visitor.login.user.name === params['name']
          ? text`Your other logins have ended.`
          : text`All logins have ended.`,
    }),
  });

  form('/admin/users/{name}/remove-second-factor', 'removeSecondFactors', {
    done: ({ params }) => ({
      to: toUser(params),
      say: text`${params['name'] ?? ''} logs in by password alone until a new second factor is set up.`,
    }),
  });

  form('/admin/users/{name}/add-to-group', 'addGroupMembers', {
    params: (sent) => ({ group: groupIn(sent) }),
    body: (_sent, { name = '' }) => ({ users: [name] }),
    done: ({ params }) => ({
      to: toUser(params),
      say: text`${params['name'] ?? ''} is in the group ${params['group'] ?? ''}.`,
    }),
    isGone: (sent, params) => ({
      to: toUser(params),
      kind: 'bad',
      say:
        groupIn(sent) === ''
          ? text`Type the name of a group.`
          : text`There is no group “${groupIn(sent)}”.`,
    }),
  });

  form('/admin/users/{name}/remove-from-group', 'removeGroupMember', {
    params: (sent) => ({ group: groupIn(sent) }),
    body: (_sent, { name = '' }) => ({ user: name }),
    done({ params, result: { origin } }) {
      const { name = '', group = '' } = params;
      const { kind, text: say } = removalNotice(
        text`${name} is no longer in the group ${group}.`,
        origin,
      );
      return { to: toUser(params), say, kind };
    },
  });

  form('/admin/users/{name}/revoke-token', 'revokeToken', {
    params: (sent) => ({ id: sent.get('token_id') ?? '' }),
    done: ({ params }) => ({ to: toUser(params), say: text`The token is revoked.` }),
    isGone: (_sent, params) => ({
      to: toUser(params),
      say: text`This token has ended already.`,
      kind: 'bad',
    }),
  });
}

const groupIn = (sent: URLSearchParams) => (sent.get('group') ?? '').trim();

/** What was typed over; what someone else has saved since the page was opened stays. */
function changedInfo(sent: URLSearchParams) {
  const { displayName, email, pictureUrl } = typedProfile(sent);
  const isChanged = (name: string, typed: string) =>
    sent.has(name) && typed !== (sent.get(`shown_${name}`) ?? '');
  return {
    ...(isChanged('display_name', displayName) && { display_name: displayName }),
    ...(isChanged('email', email) && { email }),
    ...(isChanged('picture_url', pictureUrl) && {
      avatar_url: pictureUrl === '' ? null : pictureUrl,
    }),
  };
}

function typedProfile(sent: URLSearchParams) {
  return {
    displayName: sent.get('display_name') ?? '',
    email: sent.get('email') ?? '',
    pictureUrl: (sent.get('picture_url') ?? '').trim(),
  };
}

function viewOf(
  { layout, model, may, failure }: Shown<ModelOf<'viewUser'>>,
  { urls, urlOf }: Pick<BoundPages['pages'], 'urls' | 'urlOf'>,
): AdminUserView {
  const { user, profile, rights, defaultPrefix } = model;
  const servers = model.servers.map(({ server, prefix, load }) => ({
    ...summaryOf(server, urlOf(prefix), load),
    mayOpen: may('openServer', { server: server.name }),
  }));
  const untouched =
    defaultPrefix === undefined || servers.some(({ name }) => name === '')
      ? []
      : [untouchedServer(user.name, urlOf(defaultPrefix))];
  return {
    ...model,
    layout,
    profile: profile && { ...profile.info, ...profile, typed: typedIn(failure) },
    rights: {
      ...rights,
      groups: rights.groups?.map((group) => ({
        ...group,
        mayRemove: may('removeGroupMember', { group: group.name }),
      })),
      tokens: rights.tokens && {
        ...rights.tokens,
        shown: rights.tokens.shown.map((token) => ({ ...token, title: titleOf(token) })),
      },
      roles: rights.roles?.map((role) => ({
        ...role,
        mayTakeAway:
          role.reasons.some(
            (reason) => reason.kind === 'given' && reason.origin === runtimeOrigin,
          ) && may('takeRoleAway', { role: role.name }),
      })),
      giveAccessUrl: may('giveAccess') ? urls.adminGiveAccess({ user: user.name }) : undefined,
      mayRevoke: may('revokeToken'),
    },
    identities: model.identities.map(({ label, display }) => ({
      label: loginLabels(label),
      display,
    })),
    servers: [...untouched, ...servers],
    may: {
      change: may('changeUser'),
      delete: may('deleteUser'),
      endSessions: may('endSessions'),
    },
  };
}

function typedIn(failure: Failure | undefined) {
  if (failure?.problem === undefined) return undefined;
  return { ...typedProfile(failure.sent), problem: failure.problem };
}

type Token = NonNullable<ModelOf<'viewUser'>['rights']['tokens']>['shown'][number];

function titleOf({ note, clientId, client, server }: Token): UserToken['title'] {
  if (server !== undefined) {
    return server.serverName === '' ? text`Default server` : text`Server ${server.serverName}`;
  }
  // The reader is an administrator: no server is theirs here.
  if (clientId !== undefined) return clientTitle(client, clientId, '');
  const title: Phrase = note === '' ? text`No note` : note;
  return title;
}
