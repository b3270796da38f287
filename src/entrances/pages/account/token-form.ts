import { identifyScopes } from '../../../identity/oauth/requested-scopes.ts';
import { maxNoteLength } from '../../../identity/oauth/tokens/token-issuer.ts';
import { mayGrant } from '../../../identity/rbac/access-check.ts';
import type { Membership } from '../../../identity/rbac/membership.ts';
import type { Owner } from '../../../identity/rbac/owner.ts';
import { expandScopes, readScope, type ScopeSet } from '../../../identity/rbac/scope.ts';
import { filterKindsOf, takesReach } from '../../../identity/rbac/scope-choices.ts';
import type { ScopeCatalogue } from '../../../identity/rbac/scope-definitions.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';

/** What can be chosen in one go; `choose` means the scopes that are ticked. */
export type TokenExtent = 'everything' | 'identify' | 'servers' | 'choose';

/** The form for a new token, as it is sent, and as an address or an expired login brings it back. */
export interface TokenForm {
  readonly note: string;
  /** Seconds; empty for a token that does not expire. */
  readonly expires_in: string | undefined;
  readonly may: TokenExtent | undefined;
  /** Scopes that are ticked; those that reach others have no filter yet. */
  readonly ticked: readonly string[];
  /** Filter for those: empty, one such as `!group=staff`, or a kind to which `reachName` belongs. */
  readonly reach: string;
  readonly reachName: string;
  /** Scopes as text, separated by white space. */
  readonly scopes: string;
  /** What is looked for among many services. */
  readonly search: string;
}

const extents: readonly TokenExtent[] = ['everything', 'identify', 'servers', 'choose'];

/** What the choices other than `choose` stand for. */
export const extentScopes: Readonly<Record<Exclude<TokenExtent, 'choose'>, readonly string[]>> = {
  everything: ['inherit'],
  identify: identifyScopes,
  servers: ['access:servers!user', 'servers!user'],
};

/** More are not ticked by hand. */
const maxTicked = 500;
const maxTextLength = 16_384;
const maxFieldLength = 300;

export function readTokenForm(form: URLSearchParams): TokenForm {
  const ticked = [...form.getAll('scope'), ...wordsOf(form.get('ticked') ?? '')];
  return {
    note: (form.get('note') ?? '').trim().slice(0, maxNoteLength),
    expires_in: form.get('expires_in')?.slice(0, maxFieldLength),
    may: extents.find((extent) => extent === form.get('may')),
    ticked: [...new Set(ticked)].slice(0, maxTicked),
    reach: (form.get('reach') ?? '').slice(0, maxFieldLength),
    reachName: (form.get('reach_name') ?? '').trim().slice(0, maxFieldLength),
    scopes: wordsOf(form.get('scopes') ?? '')
      .join(' ')
      .slice(0, maxTextLength),
    search: (form.get('service_search') ?? '').trim().slice(0, 100),
  };
}

/** The scopes that a form asks for, or why it does not say. */
export function requestedScopes(
  form: TokenForm,
  catalogue: ScopeCatalogue,
): { readonly scopes: readonly string[] } | { readonly field: string; readonly problem: Phrase } {
  const { ticked } = form;
  const typed = wordsOf(form.scopes);
  const hasChosen = ticked.length + typed.length > 0;
  // Scripts that send no choice have always got everything unless they named scopes.
  const may = form.may ?? (hasChosen ? 'choose' : 'everything');
  if (may !== 'choose') {
    if (!hasChosen) return { scopes: extentScopes[may] };
    return {
      field: 'may',
      problem: text`Single rights are ticked or typed below, but another choice is made above. Choose “Only what I choose” for a token with these rights, or untick them.`,
    };
  }
  if (!hasChosen)
    return { field: 'may', problem: text`Tick at least one thing that the token may do.` };
  const reach = reachOf(form);
  if (reach === undefined)
    return {
      field: 'reach_name',
      problem: text`Type the name for whom or what the rights hold.`,
    };
  const scopes: string[] = [];
  for (const each of ticked) {
    const { scope } = readScope(each);
    const definition = scope && catalogue.get(scope.name);
    const isOpen =
      scope !== undefined &&
      definition !== undefined &&
      scope.filter === undefined &&
      takesReach(scope.name, definition);
    if (!isOpen || reach === '') scopes.push(each);
    else if (filterKindsOf(definition).some((kind) => reach.startsWith(`!${kind}=`)))
      scopes.push(each + reach);
    else
      return {
        field: 'reach',
        problem: text`“${definition.description}” cannot be limited to this: ${reach.slice(1)}.`,
      };
  }
  return { scopes: [...new Set([...scopes, ...typed])] };
}

/** Which of the choices made in one go a holder can make. */
export function offeredExtents(
  held: ScopeSet,
  owner: Owner,
  catalogue: ScopeCatalogue,
  membership: Membership,
): TokenExtent[] {
  return extents.filter((extent) => {
    if (extent === 'everything') return true;
    if (extent === 'choose') return held.size > 0;
    return mayGrant(held, expandScopes(extentScopes[extent], { catalogue, owner }), membership);
  });
}

/** Kinds of names that can be typed after `Only for`. */
export const namedReaches = ['user', 'group', 'service'] as const;

function reachOf({ reach, reachName }: TokenForm): string | undefined {
  if (reach === '' || reach.startsWith('!')) return reach;
  return reachName === '' ? undefined : `!${reach}=${reachName}`;
}

function wordsOf(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
