import type Router from '@koa/router';
import type { Context } from 'koa';
import { HubError } from '../../errors.ts';
import type { AccessToken } from '../../oauth/tokens/access-token.ts';
import type { AccessTokenStore } from '../../oauth/tokens/access-token-store.ts';
import type { TokenIssuer } from '../../oauth/tokens/token-issuer.ts';
import { mayGrant } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import { adminScopes } from '../../rbac/default-roles.ts';
import { type ScopeChoices, scopeChoices } from '../../rbac/scope-choices.ts';
import { describeScopes } from '../../rbac/scope-descriptions.ts';
import type { Login } from '../../sessions/login-sessions.ts';
import { type Phrase, text } from '../../texts/text.ts';
import { lastPageOf, onPage, type PagingView, pageNumberIn } from '../elements/paging.ts';
import { type HtmlValue, html } from '../html.ts';
import type { ConfirmLogin } from '../login/confirm-login.ts';
import type { PageContext } from '../page-context.ts';
import { withHint } from '../problem-of.ts';
import type { ShownOnce } from '../shown-once.ts';
import {
  offeredExtents,
  readTokenForm,
  requestedScopes,
  type TokenForm,
  tokenFormQuery,
} from './token-form.ts';
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
    readonly clientNameOf: (clientId: string) => Promise<Phrase>;
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
    const tokenPart = partOf(inOrder(own), query, 'page', pages.urls.tokens);
    const clientPart = partOf(clientsOf(tokens), query, 'apps_page', pages.urls.tokens);
    const choices = scopeChoices(held, { reader, catalogue, serviceNames: deps.serviceNames() });
    const page = tokenPage({
      layout: await pages.formLayoutFor(ctx),
      newToken: rest.newToken,
      opened: rest.opened,
      tokens: tokenPart.items.map((token) => ({ ...token, may: describe(token.scopes) })),
      clients: await Promise.all(
        clientPart.items.map(async (client) => ({
          ...client,
          name: await deps.clientNameOf(client.clientId),
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
      return show(ctx, login, {
        newToken: deps.newTokens.take(ctx),
        opened: prefilling.some((name) => query.has(name)) ? 'by address' : undefined,
        form: readTokenForm(query),
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
        return fail(html`${error.shown.message} ${text`Revoke one that you no longer need.`}`, 409);
      }
      await fail(withHint(error), 400);
    }
  });

  router.post('/token', async (ctx) => {
    const kept = await pages.formWithoutLogin(ctx);
    if (kept === undefined) return create(ctx);
    pages.redirectToLogin(ctx, `${pages.urls.tokens}?${tokenFormQuery(readTokenForm(kept))}`);
  });

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
  return [...byClient]
    .map(([clientId, group]) => ({
      clientId,
      scopes: [...new Set(group.flatMap(({ scopes }) => scopes))].sort(),
      tokenCount: group.length,
      firstAllowedAt: new Date(Math.min(...group.map(({ createdAt }) => createdAt.getTime()))),
      lastUsedAt: latest(group.map(({ lastUsedAt }) => lastUsedAt)),
    }))
    .toSorted(
      (one, other) => (other.lastUsedAt?.getTime() ?? 0) - (one.lastUsedAt?.getTime() ?? 0),
    );
}

/** Newest first, and those that have expired last. */
function inOrder(tokens: readonly AccessToken[]): AccessToken[] {
  const now = Date.now();
  const isOver = ({ expiresAt }: AccessToken) =>
    expiresAt !== undefined && expiresAt.getTime() <= now ? 1 : 0;
  return tokens.toSorted(
    (one, other) =>
      isOver(one) - isOver(other) || other.createdAt.getTime() - one.createdAt.getTime(),
  );
}

/** The part of a list that the page of this number shows; the last one where there are fewer. */
function partOf<Item>(
  items: readonly Item[],
  query: URLSearchParams,
  parameter: string,
  url: string,
): { readonly items: readonly Item[]; readonly paging: PagingView } {
  const total = items.length;
  const page = Math.min(pageNumberIn(query, parameter), lastPageOf(total, pageSize));
  const shown = onPage(items, page, pageSize);
  const urlOf = (number: number) => `${url}?${parameter}=${number}`;
  return { items: shown, paging: { page, size: pageSize, total, shown: shown.length, urlOf } };
}

function latest(dates: readonly (Date | undefined)[]): Date | undefined {
  const times = dates.filter((date) => date !== undefined).map((date) => date.getTime());
  return times.length === 0 ? undefined : new Date(Math.max(...times));
}
