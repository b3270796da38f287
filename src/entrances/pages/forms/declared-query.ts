import type { Context } from 'koa';
import type { OperationDeclaration } from '../../../operations/operation.ts';
import { unknownParameters } from '../../../operations/unknown-parameters.ts';
import type { PassedOver } from '../elements/layout-props.ts';
import type { PageOptions } from './binding.ts';

/** The parameters that the address of a page may have. */
type Declared = readonly string[] | 'any';

export function declaredOf(
  { query }: Pick<OperationDeclaration, 'query'>,
  { query: ofPage = [] }: Pick<PageOptions, 'query'> = {},
): Declared {
  return ofPage === 'any' ? ofPage : [...Object.keys(query?.shape ?? {}), ...ofPage];
}

/** The part of the query that is declared: a page can read nothing else. */
export function searchOf({ querystring }: Pick<Context, 'querystring'>, declared: Declared) {
  const given = [...new URLSearchParams(querystring)];
  return new URLSearchParams(
    declared === 'any' ? given : given.filter(([name]) => declared.includes(name)),
  );
}

/** A link must not have the page say what its author likes. */
const shownName = /^[\w.-]{1,32}$/;
const maxShown = 3;

/** What is not declared, and the address with what was meant in its place. */
export function passedOverAt(
  { path, query, querystring }: Pick<Context, 'path' | 'query' | 'querystring'>,
  declared: Declared,
): PassedOver | undefined {
  const unknown = declared === 'any' ? [] : unknownParameters(query, declared);
  if (unknown.length === 0) return undefined;
  const names = unknown.map(({ name }) => (shownName.test(name) ? name : '…'));
  const shown = [...new Set(names.length > maxShown ? [...names.slice(0, maxShown), '…'] : names)];
  const meantOf = new Map(unknown.map(({ name, meant }) => [name, meant]));
  const corrected = new URLSearchParams();
  for (const [name, value] of new URLSearchParams(querystring)) {
    const known = meantOf.has(name) ? meantOf.get(name) : name;
    if (known !== undefined && (known === name || !(known in query)))
      corrected.append(known, value);
  }
  const meant = [...new Set(meantOf.values())].filter((name) => name !== undefined);
  return {
    names: shown,
    meant: meant.length === 0 ? undefined : { names: meant, url: `${path}?${corrected}` },
  };
}
