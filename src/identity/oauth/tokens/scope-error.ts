import { closestName } from '../../../platform/config/suggestion.ts';
import { HubError } from '../../../platform/errors.ts';
import { joined, message, type Phrase, text } from '../../../platform/texts/text.ts';
import { quoteScope, type ScopeSet } from '../../rbac/scope.ts';
import { isForServicesOnly, type ScopeCatalogue } from '../../rbac/scope-definitions.ts';

/** Scopes that one message names. */
const maxNamed = 5;

/** Says which scopes cannot be put into a token, and what was probably meant. */
export function scopeError(
  code: 'bad_request' | 'forbidden',
  {
    unknown,
    excess,
    grantedScopes,
    whose,
    catalogue,
  }: {
    readonly unknown: readonly string[];
    readonly excess: readonly string[];
    /** Whose rights these scopes go beyond. */
    readonly whose: 'yours' | "the owner's";
    /** What the person asking holds; undefined where it is not for them to know. */
    readonly grantedScopes: ScopeSet | undefined;
    readonly catalogue: ScopeCatalogue;
  },
): HubError {
  const said = [
    ...(unknown.length > 0 ? [unknownText(unknown)] : []),
    ...(excess.length > 0 ? [excessText(excess, whose)] : []),
  ];
  const hints = [
    ...unknown.slice(0, maxNamed).map((scope) => meant(scope, catalogue)),
    ...excess.slice(0, maxNamed).map((scope) => grantedScopes && narrower(scope, grantedScopes)),
  ].filter((hint) => hint !== undefined);
  const field = { name: 'scopes', problem: joined([...said, ...hints]) };
  return new HubError(code, joined(said), {
    field,
    ...(hints.length > 0 && { hint: joined(hints) }),
  });
}

function unknownText(scopes: readonly string[]): Phrase {
  return message(
    '{count, plural, one {The scope {names} is unknown or malformed.} other {The scopes {names} are unknown or malformed.}}',
    { count: scopes.length, names: named(scopes) },
  );
}

function excessText(scopes: readonly string[], whose: 'yours' | "the owner's"): Phrase {
  const values = { count: scopes.length, names: named(scopes) };
  return whose === 'yours'
    ? message(
        '{count, plural, one {The scope {names} is more than you may do.} other {The scopes {names} are more than you may do.}}',
        values,
      )
    : message(
        '{count, plural, one {The scope {names} is more than the owner of the token may do.} other {The scopes {names} are more than the owner of the token may do.}}',
        values,
      );
}

function named(scopes: readonly string[]): Phrase {
  const names = scopes.slice(0, maxNamed).map(quoteScope).join(', ');
  const more = scopes.length - maxNamed;
  return more > 0 ? text`${names} and ${more} more` : names;
}

/** The name that was probably meant, with the filter as it was written. */
function meant(scope: string, catalogue: ScopeCatalogue): Phrase | undefined {
  const [name = ''] = scope.split('!', 1);
  // Custom scopes are those of services, and not for everyone to know.
  const known = catalogue.names.filter(
    (each) => !each.startsWith('custom:') && !isForServicesOnly(each, catalogue),
  );
  const closest = closestName(name, known);
  if (closest === undefined || closest === name) return undefined;
  return text`Did you mean ${quoteScope(closest + scope.slice(name.length))}?`;
}

/** The forms of a scope that are held, where it is held for some only. */
function narrower(scope: string, grantedScopes: ScopeSet): Phrase | undefined {
  const [name = ''] = scope.split('!', 1);
  const filtered = [...grantedScopes].filter((each) => each.startsWith(`${name}!`)).slice(0, 3);
  if (filtered.length === 0) return undefined;
  return text`You have ${filtered.map(quoteScope).join(', ')}.`;
}
