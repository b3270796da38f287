import type { OperationId } from '../../../operations/operations.ts';
import { maxFound } from '../../../operations/search.ts';
import { type Phrase, phraseIn, text } from '../../../platform/texts/text.ts';
import type { UserServers } from '../../../workloads/servers/user-servers.ts';
import { adminTabs } from '../elements/layout.ts';
import type { BoundPages, ModelOf, Shown } from '../forms/binding.ts';
import { serverTitle } from '../servers/server-summary.ts';
import { linksTo } from '../services/open-services.ts';
import { matchesSearch } from '../services/services-query.ts';
import { type SearchResult, searchPage } from './search-page.ts';

/** `/hub/search`: servers, services, users and actions by name, as a page or, for those who ask for it, as JSON. */
export function searchRoutes(
  { page, pages }: BoundPages,
  { servers }: { readonly servers: Pick<UserServers, 'prefixOf'> },
): void {
  const { urls } = pages;

  function serversOf({ model, may, visitor }: Shown<ModelOf<'viewSearch'>>): SearchResult[] {
    const { name: own } = visitor.login.user;
    return model.servers
      .filter(({ userName, name }) => may('viewServer', { name: userName, server: name }))
      .map((server) => ({
        title: serverTitle(server, own),
        kind: server.userName === own ? text`Server` : text`Server of ${server.userName}`,
        url:
          server.userName === own && server.state === 'running'
            ? pages.urlOf(servers.prefixOf(server))
            : urls.server(server.userName, server.name),
        named: { type: 'server', name: `${server.userName}/${server.name}` } as const,
      }));
  }

  function actionsOf({ layout, may }: Shown<ModelOf<'viewSearch'>>): SearchResult[] {
    const action = (title: Phrase, url: string) => ({ title, kind: text`Page`, url });
    const administration: readonly (readonly [OperationId, Phrase, string])[] = [
      ['viewNewUsers', text`Add users`, urls.adminNewUsers],
      ['viewNewRole', text`New role`, urls.adminNewRole],
      ['viewNewService', text`Add service`, urls.adminNewService],
    ];
    const isOpen = layout.user?.mayAdminister === true;
    return [
      action(text`Home`, urls.home),
      action(text`Services`, urls.services),
      action(text`Account`, urls.account),
      action(text`Sessions`, urls.sessions),
      action(text`Tokens`, urls.tokens),
      ...(isOpen ? adminTabs(layout) : []).map(({ label, url }) => ({
        ...action(label, url),
        kind: text`Administration`,
      })),
      ...administration
        .filter(([id]) => isOpen && may(id))
        .map(([, title, url]) => ({ ...action(title, url), kind: text`Administration` })),
    ];
  }

  page('/search', 'viewSearch', (shown) => {
    const { layout, model, language, ctx } = shown;
    const { search } = model;
    const sought = search.toLowerCase();
    const matching = (results: readonly SearchResult[]) =>
      results
        .filter(({ title, kind }) =>
          [title, kind].some((each) => phraseIn(each, language).toLowerCase().includes(sought)),
        )
        .slice(0, maxFound);
    const results = [
      ...matching(serversOf(shown)),
      ...linksTo(model.services, pages, language)
        .filter((each) => matchesSearch(search, each))
        .slice(0, maxFound)
        .map(({ name, title, url }) => ({
          ...{ title, kind: text`Service`, url },
          named: { type: 'service', name } as const,
        })),
      ...model.users
        .filter(({ name }) => layout.mayOpen?.('user', name) === true)
        .map(({ name, displayName }) => ({
          title: displayName ?? name,
          kind: text`User ${name}`,
          url: urls.adminUser(name),
          named: { type: 'user', name } as const,
        })),
      ...model.groups
        .filter((name) => layout.mayOpen?.('group', name) === true)
        .map((name) => ({
          ...{ title: name, kind: text`Group`, url: urls.adminGroup(name) },
          named: { type: 'group', name } as const,
        })),
      ...matching(actionsOf(shown)),
    ];
    if (ctx.accepts('html', 'json') !== 'json') return searchPage({ layout, search, results });
    ctx.body = {
      results: results.map(({ title, kind, url, named }) => ({
        title: phraseIn(title, language),
        kind: phraseIn(kind, language),
        url,
        ...named,
      })),
    };
    return undefined;
  });
}
