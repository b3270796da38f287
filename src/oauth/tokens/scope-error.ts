import { closestName } from '../../config/suggestion.ts';
import { HubError } from '../../errors.ts';
import { quoteScope, type ScopeSet } from '../../rbac/scope.ts';
import { isForServicesOnly, type ScopeCatalogue } from '../../rbac/scope-definitions.ts';

/** Scopes that one message names. */
const mostNamed = 5;

/** Says which scopes cannot be put into a token, and what was probably meant. */
export function scopeError(
  code: 'bad_request' | 'forbidden',
  {
    unknown,
    beyond,
    who,
    held,
    catalogue,
  }: {
    readonly unknown: readonly string[];
    readonly beyond: readonly string[];
    /** Whose rights these scopes go beyond. */
    readonly who: string;
    /** What the person asking holds; undefined where it is not for them to know. */
    readonly held: ScopeSet | undefined;
    readonly catalogue: ScopeCatalogue;
  },
): HubError {
  const message = [
    unknown.length > 0 && `The ${listed(unknown)} unknown or malformed.`,
    beyond.length > 0 && `The ${listed(beyond)} more than ${who} may do.`,
  ];
  const hints = [
    ...unknown.slice(0, mostNamed).map((text) => meant(text, catalogue)),
    ...beyond.slice(0, mostNamed).map((text) => held && narrower(text, held)),
  ].filter((hint) => hint !== undefined);
  return new HubError(code, message.filter(Boolean).join(' '), {
    ...(hints.length > 0 && { hint: [...new Set(hints)].join(' ') }),
  });
}

function listed(scopes: readonly string[]): string {
  const names = scopes.slice(0, mostNamed).map(quoteScope).join(', ');
  const more = scopes.length - mostNamed;
  if (scopes.length === 1) return `scope ${names} is`;
  return `scopes ${names}${more > 0 ? ` and ${more} more` : ''} are`;
}

/** The name that was probably meant, with the filter as it was written. */
function meant(text: string, catalogue: ScopeCatalogue): string | undefined {
  const [name = ''] = text.split('!', 1);
  // Custom scopes are those of services, and not for everyone to know.
  const known = catalogue.names.filter(
    (each) => !each.startsWith('custom:') && !isForServicesOnly(each, catalogue),
  );
  const closest = closestName(name, known);
  if (closest === undefined || closest === name) return undefined;
  return `Did you mean ${quoteScope(closest + text.slice(name.length))}?`;
}

/** The forms of a scope that are held, where it is held for some only. */
function narrower(text: string, held: ScopeSet): string | undefined {
  const [name = ''] = text.split('!', 1);
  const filtered = [...held].filter((each) => each.startsWith(`${name}!`)).slice(0, 3);
  if (filtered.length === 0) return undefined;
  return `You have ${filtered.map(quoteScope).join(', ')}.`;
}
