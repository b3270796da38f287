import type Router from '@koa/router';
import type { Context } from 'koa';
import { HubError } from '../../errors.ts';
import type { Client } from '../../oauth/clients/client.ts';
import type { AccessToken } from '../../oauth/tokens/access-token.ts';
import type { AccessTokenStore } from '../../oauth/tokens/access-token-store.ts';
import type { TokenIssuer } from '../../oauth/tokens/token-issuer.ts';
import { mayGrant } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import { adminScopes } from '../../rbac/default-roles.ts';
import { type ScopeChoices, scopeChoices } from '../../rbac/scope-choices.ts';
import { describeScopes } from '../../rbac/scope-descriptions.ts';
import type { Login } from '../../sessions/login-sessions.ts';
import { type PageEdge, readPageOf } from '../../store/page-edge.ts';
import { type Phrase, text, translated } from '../../texts/text.ts';
import {
  bordersOf,
  edgeFields,
  edgeIn,
  lastPageOf,
  type PagingView,
  pageNumberIn,
} from '../elements/paging.ts';
import { type HtmlValue, html } from '../html.ts';
import type { ConfirmLogin } from '../login/confirm-login.ts';
import type { PageContext } from '../page-context.ts';
import { withHint } from '../problem-of.ts';
import type { ShownOnce } from '../shown-once.ts';
import { clientTitle } from './client-title.ts';
import { offeredExtents, readTokenForm, requestedScopes, type TokenForm } from './token-form.ts';
import { type TokenView, tokenPage } from './token-page.ts';

const day = 86_400;
const lifetimes = [
  { value: '3600', label: text`1 hour` },
  { value: String(day), label: text`1 day` },
  { value: String(7 * day), label: text`1 week` },
  { value: String(30 * day), label: text`30 days` },
  { value: String(365 * day), label: text`1 year` },
  { value: '', label: text`Does not expire` },
];

/** Tokens and applications on one page. */
const pageSize = 10;

/** Fields that fill in the form from an address. */
const prefilling = ['note', 'expires_in', 'may', 'scope', 'ticked', 'reach', 'scopes', 'new'];

/** `/hub/token`: tokens made by hand, and applications that were allowed to act for the person. */
export function tokenPageRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly confirmLogin: ConfirmLogin;
    readonly accessTokens: AccessTokenStore;
    readonly tokenIssuer: TokenIssuer;
    readonly authorizer: Pick<Authorizer, 'catalogue' | 'membershipFor'>;
    /** `Hub.token_expires_in_max_seconds`; 0 for none. */
    readonly maxLifetimeSeconds: number;
    readonly newTokens: ShownOnce<{ readonly token: string; readonly note: string }>;
    readonly findClient: (clientId: string) => Promise<Client | undefined>;
    readonly serviceNames: () => readonly string[];
    readonly titleOfService: (name: string) => Phrase | undefined;
  },
): void {
  const { pages, accessTokens, tokenIssuer, authorizer, maxLifetimeSeconds } = deps;
  const { catalogue } = authorizer;
  const offered =
    maxLifetimeSeconds === 0
      ? lifetimes
      : lifetimes.filter(({ value }) => value !== '' && Number(value) <= maxLifetimeSeconds);

  const nameOfClient = async (clientId: string, viewer: string): Promise<Phrase> =>
    clientTitle(await deps.findClient(clientId), clientId, viewer);

  async function show(
    ctx: Context,
    login: Login,
    rest: Pick<TokenView, 'newToken' | 'opened'> & {
      readonly form: TokenForm;
      readonly problem?: HtmlValue;
    },
    status = 200,
  ): Promise<void> {
    const { name } = login.user;
    const reader = { userName: name, titleOfService: deps.titleOfService };
    const describe = (scopes: readonly string[]) => describeScopes(scopes, catalogue, reader);
    const [tokens, { scopes: held }] = await Promise.all([
      accessTokens.listOfUser(login.user.id),
      pages.callerOf(login),
    ]);
    const membership = await authorizer.membershipFor(held);
    const own = tokens.filter(
      ({ clientId, server }) => clientId === undefined && server === undefined,
    );
    const query = new URLSearchParams(ctx.querystring);
    const partOf = <Item>(items: readonly Item[], prefix: string, place: (item: Item) => Place) =>
      pageOf(items, place, { query, prefix, url: pages.urls.tokens });
    const [tokenPart, clientPart] = await Promise.all([
      partOf(own, '', placeOfToken),
      partOf(clientsOf(tokens), 'apps_', placeOfClient),
    ]);
    const choices = scopeChoices(held, { reader, catalogue, serviceNames: deps.serviceNames() });
    const page = tokenPage({
      layout: await pages.formLayoutFor(ctx),
      newToken: rest.newToken,
      opened: rest.opened,
      tokens: tokenPart.items.map((token) => ({ ...token, may: describe(token.scopes) })),
      clients: await Promise.all(
        clientPart.items.map(async (client) => ({
          ...client,
          name: await nameOfClient(client.clientId, login.user.name),
          may: describe(client.scopes),
        })),
      ),
      pages: { tokens: tokenPart.paging, clients: clientPart.paging },
      form: {
        lifetimes: offered,
        extents: offeredExtents(held, { kind: 'user', name }, catalogue, membership),
        choices,
        isAdministrator: mayGrant(held, adminScopes(catalogue), membership),
        form: withoutStrangers(rest.form, choices),
        problem: rest.problem,
      },
    });
    pages.send(ctx, page, status);
  }

  router.get(
    '/token',
    pages.loggedIn((ctx, login) => {
      const query = new URLSearchParams(ctx.querystring);
      const typed = pages.takeTyped(ctx, pages.urls.tokens);
      const isPrefilled = prefilling.some((name) => query.has(name));
      return show(ctx, login, {
        newToken: deps.newTokens.take(ctx),
        opened: typed !== undefined ? 'by hand' : isPrefilled ? 'by address' : undefined,
        form: readTokenForm(typed ?? query),
      });
    }),
  );

  const create = deps.confirmLogin.change(async (ctx, login, sent) => {
    const form = readTokenForm(sent);
    const fail = (problem: HtmlValue, status: number) =>
      show(ctx, login, { form, problem, opened: 'by hand' }, status);
    if (sent.has('find')) return show(ctx, login, { form, opened: 'by hand' });
    const wanted = requestedScopes(form, catalogue);
    if ('problem' in wanted) return fail(wanted.problem, 400);
    try {
      const issued = await tokenIssuer.createApiToken({
        granter: await pages.callerOf(login),
        owner: { kind: 'user', user: login.user },
        note: form.note === '' ? 'Made on the token page' : form.note,
        scopes: wanted.scopes,
        ...(form.expires_in ? { expiresInSeconds: Number(form.expires_in) } : {}),
      });
      // Shown by the page that follows, so that loading it again makes no second token.
      deps.newTokens.keep(ctx, { token: issued.token, note: form.note });
      ctx.redirect(pages.urls.tokens);
      ctx.status = 303;
    } catch (error) {
      if (!(error instanceof HubError) || error.code === 'storage_unavailable') throw error;
      if (error.code === 'conflict') {
        return fail(
          html`${translated(error.shown.message)} ${text`Revoke one that you no longer need.`}`,
          409,
        );
      }
      await fail(withHint(error), 400);
    }
  });

  router.post('/token', create);

  router.post(
    '/token/revoke',
    pages.loggedIn(async (ctx, login) => {
      const form = await pages.readForm(ctx);
      const token = await accessTokens.findById(form.get('token_id') ?? '');
      if (token?.userId !== login.user.id)
        throw new HubError('not_found', text`You have no such token.`);
      await accessTokens.revoke(token.id);
      pages.redirectWithNotice(ctx, pages.urls.tokens, {
        kind: 'good',
        text: text`The token is revoked.`,
      });
    }),
  );

  router.post(
    '/token/revoke-client',
    pages.loggedIn(async (ctx, login) => {
      const form = await pages.readForm(ctx);
      await accessTokens.revokeByClientAndUser(form.get('client_id') ?? '', login.user.id);
      pages.redirectWithNotice(ctx, pages.urls.tokens, {
        kind: 'good',
        text: text`The application may no longer act for you.`,
      });
    }),
  );
}

/** Has what is ticked but not offered stand as text, where it can be seen and taken out. */
function withoutStrangers(form: TokenForm, { groups }: ScopeChoices): TokenForm {
  const offered = new Set(
    groups.flatMap(({ choices }) =>
      choices.flatMap((choice) => [choice.scope, ...choice.parts.map(({ scope }) => scope)]),
    ),
  );
  const strangers = form.ticked.filter((scope) => !offered.has(scope));
  return {
    ...form,
    ticked: form.ticked.filter((scope) => offered.has(scope)),
    scopes: [form.scopes, ...strangers].join(' ').trim(),
  };
}

/** What tokens of one application allow together, the one used last first. */
function clientsOf(tokens: readonly AccessToken[]) {
  const byClient = Map.groupBy(
    tokens.filter(({ clientId }) => clientId !== undefined),
    ({ clientId }) => clientId ?? '',
  );
  return [...byClient].map(([clientId, group]) => ({
    clientId,
    scopes: [...new Set(group.flatMap(({ scopes }) => scopes))].sort(),
    tokenCount: group.length,
    firstAllowedAt: new Date(Math.min(...group.map(({ createdAt }) => createdAt.getTime()))),
    lastUsedAt: latest(group.map(({ lastUsedAt }) => lastUsedAt)),
  }));
}

/** What a list is sorted by: a number, the larger the earlier, and an id. */
interface Place {
  readonly rank: number;
  readonly id: string;
}

/** Newest first, and those that have expired last. */
function placeOfToken({ id, createdAt, expiresAt }: AccessToken): Place {
  const isOver = expiresAt !== undefined && expiresAt.getTime() <= Date.now();
  return { rank: isOver ? createdAt.getTime() - mostMs : createdAt.getTime(), id };
}

/** More than any time. */
const mostMs = 10 ** 15;

function placeOfClient({ clientId, lastUsedAt }: ReturnType<typeof clientsOf>[number]): Place {
  return { rank: lastUsedAt?.getTime() ?? 0, id: clientId };
}

function comparePlaces(one: Place, other: Place): number {
  return other.rank - one.rank || (one.id < other.id ? -1 : Number(one.id > other.id));
}

const keyOf = ({ rank, id }: Place) => `${rank},${id}`;

function placeOf({ key }: PageEdge): Place | undefined {
  const [, rank, id = ''] = /^(-?\d{1,15}),(.*)$/su.exec(key) ?? [];
  return rank === undefined ? undefined : { rank: Number(rank), id };
}

/** The part of a list that an address asks for; the last one where there are fewer. */
async function pageOf<Item>(
  items: readonly Item[],
  placeIn: (item: Item) => Place,
  { query, prefix, url }: { query: URLSearchParams; prefix: string; url: string },
): Promise<{ readonly items: readonly Item[]; readonly paging: PagingView }> {
  const total = items.length;
  const page = Math.min(pageNumberIn(query, `${prefix}page`), lastPageOf(total, pageSize));
  const edge = edgeIn(query, prefix);
  const place = edge && placeOf(edge);
  const placed = items.map((item) => ({ item, place: placeIn(item) }));
  const found = await readPageOf(
    placed.toSorted((one, other) => comparePlaces(one.place, other.place)),
    { offset: (page - 1) * pageSize, limit: pageSize, edge: place && edge },
    (entry) => comparePlaces(entry.place, place ?? entry.place),
  );
  const borders = bordersOf(found, (entry) => keyOf(entry.place));
  const urlOf = (number: number, at?: PageEdge) =>
    `${url}?${new URLSearchParams({ [`${prefix}page`]: String(number), ...edgeFields(at, prefix) })}`;
  const shown = found.items.map(({ item }) => item);
  const paging = { page, edge, size: pageSize, total, shown: shown.length, borders, urlOf };
  return { items: shown, paging };
}

function latest(dates: readonly (Date | undefined)[]): Date | undefined {
  const times = dates.filter((date) => date !== undefined).map((date) => date.getTime());
  return times.length === 0 ? undefined : new Date(Math.max(...times));
}
