import type { ScopeChoices } from '../../../identity/rbac/scope-choices.ts';
import type { ScopeCatalogue } from '../../../identity/rbac/scope-definitions.ts';
import { HubError } from '../../../platform/errors.ts';
import type { ListPage } from '../../../platform/store/page-edge.ts';
import { text } from '../../../platform/texts/text.ts';
import { lifetimes } from '../elements/form.ts';
import { bordersOf, edgeFields, type PagingView } from '../elements/table.ts';
import type { BoundPages } from '../forms/binding.ts';
import type { ShownOnce } from '../shown-once.ts';
import { clientTitle } from './client-title.ts';
import { offeredExtents, readTokenForm, requestedScopes, type TokenForm } from './token-form.ts';
import { tokenPage } from './token-page.ts';

const everyLifetime = [...lifetimes, { value: '', label: text`Does not expire` }];

/** Fields that fill in the form from an address. */
const prefilling = ['note', 'expires_in', 'may', 'scope', 'ticked', 'reach', 'scopes', 'new'];

/** `/hub/token`: tokens made by hand, and applications that were allowed to act for the person. */
export function tokenPageRoutes(
  { page, form, pages }: BoundPages,
  deps: {
    readonly catalogue: ScopeCatalogue;
    /** `Hub.token_expires_in_max_seconds`; 0 for none. */
    readonly maxLifetimeSeconds: number;
    readonly newTokens: ShownOnce<{ readonly token: string; readonly note: string }>;
  },
): void {
  const { catalogue, maxLifetimeSeconds, newTokens } = deps;
  const { tokens: url } = pages.urls;
  const offered =
    maxLifetimeSeconds === 0
      ? everyLifetime
      : everyLifetime.filter(({ value }) => value !== '' && Number(value) <= maxLifetimeSeconds);

  const showTokens = page('/token', 'viewOwnTokens', (shown) => {
    const { layout, model, visitor, search, failure, ctx } = shown;
    const { owner, scopes: held } = visitor.caller;
    const typed = failure?.sent ?? pages.takeTyped(ctx, url);
    const isPrefilled = prefilling.some((name) => search.has(name));
    return tokenPage({
      layout,
      newToken: failure === undefined ? newTokens.take(ctx) : undefined,
      opened: typed !== undefined ? 'by hand' : isPrefilled ? 'by address' : undefined,
      tokens: model.tokens.items,
      clients: model.clients.items.map((each) => ({
        ...each,
        name: clientTitle(each.client, each.clientId, owner.name),
      })),
      pages: {
        tokens: pagesOf(model.tokens, url),
        clients: pagesOf(model.clients, url, 'apps_'),
      },
      form: shown.may('createToken', { name: owner.name })
        ? {
            lifetimes: offered,
            extents: offeredExtents(held, owner, catalogue, visitor.membership),
            choices: model.choices,
            isAdministrator: model.isAdministrator,
            form: withoutForeign(readTokenForm(typed ?? search), model.choices),
            problem: failure?.problem,
          }
        : undefined,
    });
  });

  form('/token', 'createToken', {
    params: (_sent, { caller }) => ({ name: caller.owner.name }),
    isUnfinished: (sent) => sent.has('find'),
    body(sent) {
      const typed = readTokenForm(sent);
      const wanted = requestedScopes(typed, catalogue);
      if ('problem' in wanted) throw new HubError('bad_request', wanted.problem);
      return {
        note: typed.note === '' ? 'Made on the token page' : typed.note,
        scopes: [...wanted.scopes],
        expires_in: typed.expires_in ? Number(typed.expires_in) : null,
      };
    },
    done({ ctx, sent, result: { token } }) {
      // Shown by the page that follows, so that loading it again makes no second token.
      newTokens.keep(ctx, { token, note: readTokenForm(sent).note });
      return { redirect: url };
    },
    again: showTokens,
  });

  form('/token/revoke', 'revokeToken', {
    params: (sent, { caller }) => ({ name: caller.owner.name, id: sent.get('token_id') ?? '' }),
    done: () => ({ to: url, say: text`The token is revoked.` }),
    isGone: () => ({ to: url, say: text`This token has ended already.`, kind: 'bad' }),
  });

  form('/token/revoke-client', 'revokeOwnClient', {
    body: (sent) => ({ client_id: sent.get('client_id') ?? '' }),
    done: () => ({ to: url, say: text`The application may no longer act for you.` }),
  });
}

/** Has what is ticked but not offered stand as text, where it can be seen and taken out. */
function withoutForeign(form: TokenForm, { groups }: ScopeChoices): TokenForm {
  const offered = new Set(
    groups.flatMap(({ choices }) =>
      choices.flatMap((choice) => [choice.scope, ...choice.parts.map(({ scope }) => scope)]),
    ),
  );
  const unoffered = form.ticked.filter((scope) => !offered.has(scope));
  return {
    ...form,
    ticked: form.ticked.filter((scope) => offered.has(scope)),
    scopes: [form.scopes, ...unoffered].join(' ').trim(),
  };
}

function pagesOf(found: ListPage<{ readonly key: string }>, url: string, prefix = ''): PagingView {
  return {
    total: found.total,
    shown: found.items.length,
    borders: bordersOf(found, ({ key }) => key),
    urlOf: (edge) => (edge ? `${url}?${new URLSearchParams(edgeFields(edge, prefix))}` : url),
  };
}
