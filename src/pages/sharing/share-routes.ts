import type Router from '@koa/router';
import type { Context } from 'koa';
import type { ActingOnUsers } from '../../accounts/acting-on-users.ts';
import { HubError } from '../../errors.ts';
import type { LiveConnections } from '../../proxy/live-connections.ts';
import { mayAccess } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Caller } from '../../rbac/caller.ts';
import { parseScope, type ScopeSet } from '../../rbac/scope.ts';
import type { Server } from '../../servers/server.ts';
import type { UserServers } from '../../servers/user-servers.ts';
import type { Login } from '../../sessions/login-sessions.ts';
import type { ShareRecipient } from '../../sharing/share.ts';
import { codeLifetimeSeconds, type Sharing } from '../../sharing/sharing.ts';
import type { PageEdge } from '../../store/page-edge.ts';
import { type Text, text } from '../../texts/text.ts';
import type { UserInfoStore } from '../../users/user-info-store.ts';
import type { UserStore } from '../../users/user-store.ts';
import { isPastLast, listUrl, pageLength, pagingOf, queryIn } from '../elements/list-query.ts';
import { lastPageOf } from '../elements/paging.ts';
import type { ConfirmLogin } from '../login/confirm-login.ts';
import type { PageContext } from '../page-context.ts';
import { problemOf } from '../problem-of.ts';
import { type ShareView, sharePage } from './share-page.ts';
import { type ShareLevel, shareLevels } from './share-words.ts';

const mostNames = 20;

/** Whose server a page is about, and what the visitor may do there. */
interface Target {
  readonly caller: Caller;
  readonly ownerName: string;
  readonly serverName: string;
  readonly may: (scope: string) => boolean;
}

/** `/hub/share/<user>/<server>`: with whom a server is shared. */
export function shareRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly confirmLogin: Pick<ConfirmLogin, 'readForm'>;
    readonly authorizer: Pick<Authorizer, 'membershipFor'>;
    readonly acting: Pick<ActingOnUsers, 'requireMayActOn'>;
    readonly users: Pick<UserStore, 'findByName'>;
    readonly userInfo: Pick<UserInfoStore, 'displayNames'>;
    readonly servers: Pick<UserServers, 'prefixOf'>;
    readonly sharing: Sharing;
    /** Those of this process. */
    readonly liveConnections: Pick<LiveConnections, 'list'>;
    /** The origin of the hub. */
    readonly origin: string;
  },
): void {
  const { pages, sharing } = deps;

  async function targetOf(ctx: Context, login: Login, scope: string): Promise<Target> {
    const ownerName = String(ctx['params']['user'] ?? '');
    const serverName = String(ctx['params']['server'] ?? '');
    const caller = await pages.callerOf(login);
    const membership = await deps.authorizer.membershipFor(caller.scopes);
    const resource = { kind: 'server', userName: ownerName, serverName } as const;
    const may = (wanted: string) => mayAccess(caller.scopes, wanted, resource, membership);
    if (!may(scope)) {
      if (ownerName === login.user.name) {
        throw new HubError('forbidden', text`You may not share servers on this hub.`, {
          hint: text`An administrator can allow it with the scope shares!user.`,
        });
      }
      throw new HubError('not_found', text`There is no such server, or it is not yours to share.`);
    }
    return { caller, ownerName, serverName, may };
  }

  /** Of other users whose connections run through this process. */
  function connectedTo({ ownerName, serverName }: Target): string[] {
    const prefix = deps.servers.prefixOf({ userName: ownerName, name: serverName });
    const names = new Set<string>();
    for (const { tags } of deps.liveConnections.list()) {
      if (tags.route.prefix !== prefix || tags.userName === undefined) continue;
      if (tags.userName !== ownerName) names.add(tags.userName);
      if (names.size === mostNames) break;
    }
    return [...names].sort();
  }

  async function show(
    ctx: Context,
    target: Target,
    rest: Pick<ShareView, 'newLink' | 'typed'> = {},
  ): Promise<void> {
    const { ownerName, serverName, may, caller } = target;
    const query = new URLSearchParams(ctx.querystring);
    const { page: number, edge } = queryIn(query);
    const offset = (number - 1) * pageLength;
    const [shares, links] = await Promise.all([
      sharing.sharesOfServer(ownerName, serverName, { offset, limit: pageLength, edge }),
      sharing.codesOfServer(ownerName, serverName, { offset: 0, limit: 100 }),
    ]);
    if (isPastLast(shares.items, shares.total)) {
      return ctx.redirect(pageUrl(target, lastPageOf(shares.total, pageLength)));
    }
    const membership = await deps.authorizer.membershipFor(caller.scopes);
    const readable = shares.items.flatMap(({ recipient: { kind, name } }) =>
      kind === 'user' && mayAccess(caller.scopes, 'read:users:info', { kind, name }, membership)
        ? [name]
        : [],
    );
    const page = sharePage({
      layout: await pages.formLayoutFor(ctx),
      ownerName,
      serverName,
      shares: shares.items,
      paging: pagingOf(
        { page: number, edge },
        shares,
        ({ key }) => key,
        (page, edge) => pageUrl(target, page, edge),
      ),
      links: links.items,
      connected: connectedTo(target),
      displayNames: await deps.userInfo.displayNames(readable),
      levels: may('shares')
        ? shareLevelNames.filter((level) => shareLevels[level].scopes.every(may))
        : [],
      recipients: recipientKinds(caller.scopes, ownerName),
      ...rest,
    });
    pages.send(ctx, page, rest.typed === undefined ? 200 : 400);
  }

  const pageUrl = ({ ownerName, serverName }: Target, page: number, edge?: PageEdge) =>
    listUrl(pages.urls.share(ownerName, serverName), '', page, edge);

  async function grant(
    ctx: Context,
    target: Target,
    server: Server,
    form: URLSearchParams,
  ): Promise<void> {
    const recipient = recipientIn(form);
    try {
      await sharing.grant(target.caller, server, recipient, scopesOf(form.get('level')));
    } catch (error) {
      return show(ctx, target, { typed: { name: recipient.name, problem: problemOf(error) } });
    }
    done(ctx, target, text`The server is shared with ${recipient.name}.`);
  }

  async function createLink(
    ctx: Context,
    target: Target,
    server: Server,
    form: URLSearchParams,
  ): Promise<void> {
    const { least, most } = codeLifetimeSeconds;
    const expiresInSeconds = Number(form.get('expires_in'));
    if (!Number.isInteger(expiresInSeconds) || expiresInSeconds < least || expiresInSeconds > most)
      throw new HubError(
        'bad_request',
        text`A link works for a minute at least and a year at most.`,
      );
    const { code } = await sharing.createCode(target.caller, server, {
      scopes: scopesOf(form.get('link_level')),
      expiresInSeconds,
    });
    await show(ctx, target, { newLink: deps.origin + pages.urls.acceptShare(code) });
  }

  function done(ctx: Context, { ownerName, serverName }: Target, outcome: Text): void {
    const url = pages.urls.share(ownerName, serverName);
    pages.redirectWithNotice(ctx, url, { kind: 'good', text: outcome });
  }

  async function change(ctx: Context, target: Target, form: URLSearchParams): Promise<void> {
    const { caller, ownerName, serverName } = target;
    const owner = await deps.users.findByName(ownerName);
    if (owner !== undefined)
      await deps.acting.requireMayActOn(caller, owner, ['shares'], serverName);
    const server = await sharing.serverOf(ownerName, serverName);
    const deed = form.get('deed') ?? '';
    switch (deed) {
      case 'grant':
        return grant(ctx, target, server, form);
      case 'create_link':
        return createLink(ctx, target, server, form);
      case 'revoke': {
        const recipient = recipientIn(form);
        await sharing.revoke(server, recipient, []);
        return done(ctx, target, text`The server is no longer shared with ${recipient.name}.`);
      }
      case 'delete_link':
        await sharing.deleteCode(server, { id: form.get('id') ?? '' });
        return done(ctx, target, text`The link is deleted.`);
      default:
        throw new HubError('bad_request', text`This form does not say what to do.`);
    }
  }

  for (const path of ['/share/:user', '/share/:user/:server']) {
    router.get(
      path,
      pages.loggedIn(async (ctx, login) => show(ctx, await targetOf(ctx, login, 'read:shares'))),
    );
    router.post(
      path,
      pages.loggedIn(async (ctx, login) => {
        const target = await targetOf(ctx, login, 'shares');
        const outlivesLogin = (form: URLSearchParams) =>
          form.get('deed') === 'grant' || form.get('deed') === 'create_link';
        const form = await deps.confirmLogin.readForm(ctx, login, outlivesLogin);
        if (form !== undefined) await change(ctx, target, form);
      }),
    );
  }
}

const shareLevelNames = Object.keys(shareLevels) as ShareLevel[];

function scopesOf(level: string | null): readonly string[] {
  const known = shareLevelNames.find((name) => name === level);
  if (known === undefined) throw new HubError('bad_request', text`Choose what others may do.`);
  return shareLevels[known].scopes;
}

function recipientIn(form: URLSearchParams): ShareRecipient {
  const kind = form.get('kind') === 'group' ? 'group' : 'user';
  return { kind, name: (form.get('name') ?? '').trim() };
}

/** Whom a visitor may name at all; whether it may be a certain one is found out when it is named. */
function recipientKinds(held: ScopeSet, ownName: string): ShareRecipient['kind'][] {
  const mayName = (scope: string) =>
    held.has(scope) ||
    [...held].some((text) => {
      if (!text.startsWith(`${scope}!`)) return false;
      const { filter } = parseScope(text);
      return filter?.kind !== 'user' || filter.value !== ownName;
    });
  return [
    ...(mayName('read:users:name') ? (['user'] as const) : []),
    ...(mayName('read:groups:name') ? (['group'] as const) : []),
  ];
}
