import type { ActingOnUsers } from '../../identity/accounts/acting-on-users.ts';
import type { Caller } from '../../identity/rbac/access-check.ts';
import { quoteScope, readScope } from '../../identity/rbac/scope.ts';
import { isShareable, type ScopeCatalogue } from '../../identity/rbac/scope-definitions.ts';
import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import { defaultScopeNames, scopesOfShare } from './share.ts';

/** The server that scopes are about. */
interface SharedServer {
  readonly userName: string;
  readonly name: string;
}

/** Most scopes in one request; there are not as many that a server can be shared with. */
export const maxScopes = 100;

/**
 * The names of scopes to share a server with; access to it where none are given. They come without a filter or with
 * that of this server. Throws `bad_request`.
 */
export function readShareScopes(
  texts: readonly string[],
  server: SharedServer,
  catalogue: ScopeCatalogue,
): readonly string[] {
  if (texts.length === 0) return defaultScopeNames;
  return [...new Set(texts.map((text) => scopeNameIn(text, server, catalogue)))].sort();
}

function scopeNameIn(written: string, server: SharedServer, catalogue: ScopeCatalogue): string {
  const { scope, problem } = readScope(written);
  if (scope === undefined) throw new HubError('bad_request', text`Wrong scope: ${problem}.`);
  const { name, filter } = scope;
  if (catalogue.get(name) === undefined) {
    throw new HubError('bad_request', text`There is no scope ${quoteScope(name)}.`);
  }
  const own = `${server.userName}/${server.name}`;
  if (filter !== undefined && (filter.kind !== 'server' || filter.value !== own)) {
    throw new HubError(
      'bad_request',
      text`The scope ${quoteScope(written)} is not about this server.`,
      {
        hint: text`Leave the filter out, or write !server=${own}.`,
      },
    );
  }
  if (!isShareable(name, catalogue)) {
    throw new HubError('bad_request', text`The scope ${quoteScope(name)} is not one of servers.`, {
      hint: text`A server can be shared with scopes of servers and shares, and with custom scopes.`,
    });
  }
  return name;
}

/** Throws `forbidden` that names what the caller lacks of what is to be shared. */
export async function requireMayShare(
  caller: Caller,
  server: SharedServer,
  scopeNames: readonly string[],
  acting: Pick<ActingOnUsers, 'excessScopes'>,
): Promise<void> {
  const excess = await acting.excessScopes(caller, scopesOfShare({ server, scopeNames }));
  if (excess.length === 0) return;
  throw new HubError('forbidden', text`No one can share more than they may do themselves.`, {
    hint: text`You lack ${excess.slice(0, 5).map(quoteScope).join(', ')}${excess.length > 5 ? ', …' : ''}.`,
  });
}
