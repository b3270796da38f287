import type Router from '@koa/router';
import type { Context } from 'koa';
import { HubError } from '../../errors.ts';
import type { AccessToken } from '../../oauth/tokens/access-token.ts';
import type { AccessTokenStore } from '../../oauth/tokens/access-token-store.ts';
import type { TokenIssuer } from '../../oauth/tokens/token-issuer.ts';
import type { Login } from '../../sessions/login-sessions.ts';
import type { ConfirmLogin } from '../login/confirm-login.ts';
import type { PageContext } from '../page-context.ts';
import type { ShownOnce } from '../shown-once.ts';
import { type AuthorizedClient, type TokenView, tokenPage } from './token-page.ts';

const day = 86_400;
const lifetimes = [
  { value: '3600', label: '1 hour' },
  { value: String(day), label: '1 day' },
  { value: String(7 * day), label: '1 week' },
  { value: String(30 * day), label: '30 days' },
  { value: String(365 * day), label: '1 year' },
  { value: '', label: 'Does not expire' },
];

/** `/hub/token`: tokens made by hand, and applications that were allowed to act for the person. */
export function tokenPageRoutes(
  router: Router,
  deps: {
    readonly pages: PageContext;
    readonly confirmLogin: ConfirmLogin;
    readonly accessTokens: AccessTokenStore;
    readonly tokenIssuer: TokenIssuer;
    /** `Hub.token_expires_in_max_seconds`; 0 for none. */
    readonly maxLifetimeSeconds: number;
    readonly newTokens: ShownOnce<{ readonly token: string; readonly note: string }>;
    readonly clientNameOf: (clientId: string) => Promise<string>;
  },
): void {
  const { pages, accessTokens, tokenIssuer, maxLifetimeSeconds } = deps;
  const offered =
    maxLifetimeSeconds === 0
      ? lifetimes
      : lifetimes.filter(({ value }) => value !== '' && Number(value) <= maxLifetimeSeconds);

  async function show(
    ctx: Context,
    login: Login,
    rest: Pick<TokenView, 'newToken' | 'problems' | 'typed' | 'error'>,
    status = 200,
  ): Promise<void> {
    const tokens = await accessTokens.listOfUser(login.user.id);
    const own = tokens.filter(
      ({ clientId, server }) => clientId === undefined && server === undefined,
    );
    pages.send(
      ctx,
      tokenPage({
        layout: await pages.formLayoutFor(ctx),
        tokens: own,
        clients: await clientsOf(tokens),
        lifetimes: offered,
        ...rest,
      }),
      status,
    );
  }

  async function clientsOf(tokens: readonly AccessToken[]): Promise<AuthorizedClient[]> {
    const byClient = Map.groupBy(
      tokens.filter(({ clientId }) => clientId !== undefined),
      ({ clientId }) => clientId ?? '',
    );
    return Promise.all(
      [...byClient].map(async ([clientId, group]) => ({
        clientId,
        name: await deps.clientNameOf(clientId),
        scopes: [...new Set(group.flatMap(({ scopes }) => scopes))].sort(),
        tokenCount: group.length,
        firstAllowedAt: new Date(Math.min(...group.map(({ createdAt }) => createdAt.getTime()))),
        lastUsedAt: latest(group.map(({ lastUsedAt }) => lastUsedAt)),
      })),
    );
  }

  router.get(
    '/token',
    pages.loggedIn((ctx, login) => show(ctx, login, { newToken: deps.newTokens.take(ctx) })),
  );

  router.post(
    '/token',
    deps.confirmLogin.change(async (ctx, login, form) => {
      const note = (form.get('note') ?? '').trim();
      const scopes = (form.get('scopes') ?? '').split(/\s+/).filter((scope) => scope !== '');
      const lifetime = form.get('expires_in') ?? '';
      const typed = { note, expires_in: lifetime, scopes: scopes.join(' ') };
      try {
        const issued = await tokenIssuer.createApiToken({
          granter: await pages.callerOf(login),
          owner: { kind: 'user', user: login.user },
          note: note === '' ? 'Made on the token page' : note,
          ...(scopes.length === 0 ? {} : { scopes }),
          ...(lifetime === '' ? {} : { expiresInSeconds: Number(lifetime) }),
        });
        // Shown by the page that follows, so that loading it again makes no second token.
        deps.newTokens.keep(ctx, { token: issued.token, note });
        ctx.redirect(pages.urls.tokens);
        ctx.status = 303;
      } catch (error) {
        if (!(error instanceof HubError) || error.code === 'storage_unavailable') throw error;
        if (error.code === 'conflict') {
          await show(ctx, login, { typed, error: error.message }, 409);
        } else await show(ctx, login, { typed, problems: { scopes: error.message } }, 400);
      }
    }),
  );

  router.post(
    '/token/revoke',
    pages.loggedIn(async (ctx, login) => {
      const form = await pages.readForm(ctx);
      const token = await accessTokens.findById(form.get('token_id') ?? '');
      if (token?.userId !== login.user.id)
        throw new HubError('not_found', 'You have no such token.');
      await accessTokens.revoke(token.id);
      pages.redirectWithNotice(ctx, pages.urls.tokens, {
        kind: 'good',
        text: 'The token is revoked.',
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
        text: 'The application may no longer act for you.',
      });
    }),
  );
}

function latest(dates: readonly (Date | undefined)[]): Date | undefined {
  const times = dates.filter((date) => date !== undefined).map((date) => date.getTime());
  return times.length === 0 ? undefined : new Date(Math.max(...times));
}
