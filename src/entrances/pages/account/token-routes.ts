import type { ScopeChoices } from '../../../identity/rbac/scope-choices.ts';
import type { ScopeCatalogue } from '../../../identity/rbac/scope-definitions.ts';
import { edgeFields } from '../../../operations/users-query.ts';
import { HubError } from '../../../platform/errors.ts';
import type { ListPage } from '../../../platform/store/page-edge.ts';
import { text } from '../../../platform/texts/text.ts';
import { lifetimes } from '../elements/form.ts';
import { bordersOf, type PagingView } from '../elements/table.ts';
import type { BoundPages, ModelOf, ShowAgain, Shown } from '../forms/binding.ts';
import type { ShownOnce } from '../shown-once.ts';
import { clientTitle } from './client-title.ts';
import { offeredExtents, readTokenForm, requestedScopes, type TokenForm } from './token-form.ts';
import type { TokenSection } from './token-section.ts';

const everyLifetime = [...lifetimes, { value: '', label: text`Does not expire` }];

/** Fields that fill in the form from an address. */
const prefilling = ['note', 'expires_in', 'may', 'scope', 'ticked', 'reach', 'scopes', 'new'];

/** Parameters of the address of the account. */
export const accountParameters = [...prefilling, 'reach_name', 'service_search'];

export interface TokenDeps {
  readonly catalogue: ScopeCatalogue;
  /** `Hub.token_expires_in_max_seconds`; 0 for none. */
  readonly maxLifetimeSeconds: number;
  readonly newTokens: ShownOnce<{ readonly token: string; readonly note: string }>;
}

const tokenPath = '/token';

/** What the account shows of tokens made by hand, and of applications that were allowed to act for the person. */
export function tokensIn(
  { model, visitor, search, failure, ctx, may }: Shown<ModelOf<'viewOwnAccount'>>,
  { pages }: Pick<BoundPages, 'pages'>,
  { catalogue, maxLifetimeSeconds, newTokens }: TokenDeps,
): TokenSection {
  const { tokens, clients, choices, isAdministrator } = model.tokens;
  const { owner, scopes: held } = visitor.caller;
  const refused = failure?.path === tokenPath ? failure : undefined;
  const typed = refused?.sent ?? pages.takeTyped(ctx, pages.urls.createToken);
  const isPrefilled = prefilling.some((name) => search.has(name));
  return {
    newToken: failure === undefined ? newTokens.take(ctx) : undefined,
    opened: typed !== undefined ? 'by hand' : isPrefilled ? 'by address' : undefined,
    tokens: tokens.items,
    clients: clients.items.map((each) => ({
      ...each,
      name: clientTitle(each.client, each.clientId, owner.name),
    })),
    pages: {
      tokens: pagesOf(tokens, pages.urls.account, 'tokens'),
      clients: pagesOf(clients, pages.urls.account, 'apps', 'apps_'),
    },
    form: may('createToken', { name: owner.name })
      ? {
          lifetimes: everyLifetime.filter(
            ({ value }) =>
              maxLifetimeSeconds === 0 || (value !== '' && Number(value) <= maxLifetimeSeconds),
          ),
          extents: offeredExtents(held, owner, catalogue, visitor.membership),
          choices,
          isAdministrator,
          form: withoutForeign(readTokenForm(typed ?? search), choices),
          problem: refused?.problem,
        }
      : undefined,
  };
}

/** The forms about tokens and applications. */
export function tokenRoutes(
  { form, pages }: BoundPages,
  showAccount: ShowAgain,
  { catalogue, newTokens }: TokenDeps,
): void {
  const { tokens: url } = pages.urls;

  form(tokenPath, 'createToken', {
    params: (_sent, { caller }) => ({ name: caller.owner.name }),
    isUnfinished: (sent) => sent.has('find'),
    body(sent) {
      const typed = readTokenForm(sent);
      const wanted = requestedScopes(typed, catalogue);
      if ('problem' in wanted) {
        const { field: name, problem } = wanted;
        throw new HubError('bad_request', problem, { field: { name, problem } });
      }
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
    again: showAccount,
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

function pagesOf(
  found: ListPage<{ readonly key: string }>,
  url: string,
  section: string,
  prefix = '',
): PagingView {
  return {
    total: found.total,
    shown: found.items.length,
    borders: bordersOf(found, ({ key }) => key),
    urlOf: (edge) =>
      `${url}${edge ? `?${new URLSearchParams(edgeFields(edge, prefix))}` : ''}#${section}`,
  };
}
