import { parseScope, type ScopeSet } from '../../../identity/rbac/scope.ts';
import { HubError } from '../../../platform/errors.ts';
import { type Text, text } from '../../../platform/texts/text.ts';
import type { ShareRecipient } from '../../../workloads/sharing/share.ts';
import { pagesOf } from '../elements/list-query.ts';
import type { BoundPages } from '../forms/binding.ts';
import type { ShownOnce } from '../shown-once.ts';
import { type ShareLevel, shareLevels } from './share-labels.ts';
import { sharePage } from './share-page.ts';

/** `/hub/share/{name}[/{server}]`: with whom a server is shared. */
export function shareRoutes(
  bound: BoundPages,
  newLinks: ShownOnce<{ readonly page: string; readonly url: string }>,
): void {
  const { page, form } = bound;
  const { urls } = bound.pages;
  const pageOf = ({ name = '', server }: Readonly<Record<string, string>>) =>
    urls.share(name, server);
  const said = (params: Readonly<Record<string, string>>, say: Text) => ({
    to: pageOf(params),
    say,
  });

  for (const path of ['{name}', '{name}/{server}']) {
    const show = page(`/share/${path}`, 'viewShares', (shown) => {
      const { layout, model, params, may, failure, visitor, ctx } = shown;
      const { name = '', server = '' } = params;
      const url = pageOf(params);
      const mayShare = may('shareServer');
      const newLink = newLinks.take(ctx);
      return sharePage({
        layout,
        ownerName: name,
        serverName: server,
        shares: model.found.items,
        paging: pagesOf(url, model, ({ key }) => key),
        links: model.links,
        connected: model.connected,
        displayNames: model.displayNames,
        levels: levelNames.filter(
          (level) => mayShare && shareLevels[level].scopes.every((scope) => model.held.has(scope)),
        ),
        recipients: recipientKinds(visitor.caller.scopes, name),
        newLink: newLink?.page === url ? newLink.url : undefined,
        typed:
          failure?.problem === undefined
            ? undefined
            : { name: recipientIn(failure.sent).name, problem: failure.problem },
      });
    });

    form(`/share/${path}`, 'shareServer', {
      body: (sent) => ({ ...bodyOf(sent), scopes: scopesOf(sent.get('level')) }),
      done: ({ params, sent }) =>
        said(params, text`The server is shared with ${recipientIn(sent).name}.`),
      again: show,
    });

    form(`/end-share/${path}`, 'revokeShare', {
      body: bodyOf,
      done: ({ params, sent }) =>
        said(params, text`The server is no longer shared with ${recipientIn(sent).name}.`),
    });

    form(`/make-share-link/${path}`, 'createShareCode', {
      body: (sent) => ({
        scopes: scopesOf(sent.get('link_level')),
        expires_in: Number(sent.get('expires_in')),
      }),
      done({ params, result, ctx }) {
        newLinks.keep(ctx, { page: pageOf(params), url: result.full_accept_url });
        return { redirect: pageOf(params) };
      },
    });

    form(`/delete-share-link/${path}`, 'deleteShareCodes', {
      query: (sent) => ({ id: sent.get('id') ?? '' }),
      done: ({ params }) => said(params, text`The link is deleted.`),
    });
  }
}

const levelNames = Object.keys(shareLevels) as ShareLevel[];

function scopesOf(level: string | null): string[] {
  const known = levelNames.find((name) => name === level);
  if (known === undefined) throw new HubError('bad_request', text`Choose what others may do.`);
  return [...shareLevels[known].scopes];
}

function recipientIn(form: URLSearchParams): ShareRecipient {
  const kind = form.get('kind') === 'group' ? 'group' : 'user';
  return { kind, name: (form.get('name') ?? '').trim() };
}

function bodyOf(form: URLSearchParams) {
  const { kind, name } = recipientIn(form);
  return { [kind]: name };
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
