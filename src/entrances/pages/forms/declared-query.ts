import type { Context } from 'koa';
import { z } from 'zod';
import type { OperationDeclaration } from '../../../operations/operation.ts';
import { unknownParameters } from '../../../operations/unknown-parameters.ts';
import { closestName } from '../../../platform/config/suggestion.ts';
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

/** A name that nothing declares, or a value that its operation takes as not said, with what was meant. */
interface Unknown {
  readonly name: string;
  readonly value?: string;
  readonly meant: { readonly name: string; readonly value?: string } | undefined;
}

/** What is not declared or cannot be, and the address with what was meant in its place. */
export function passedOverAt(
  { path, query, querystring }: Pick<Context, 'path' | 'query' | 'querystring'>,
  declared: Declared,
  { query: schema }: Pick<OperationDeclaration, 'query'> = {},
): PassedOver | undefined {
  const unknown = [
    ...(declared === 'any' ? [] : unknownNames(query, declared)),
    ...unknownValues(query, schema?.shape ?? {}),
  ];
  if (unknown.length === 0) return undefined;
  const names = unknown.map(({ name, value }) => {
    const shown = [name, ...(value === undefined ? [] : [value])];
    return shown.map((part) => (shownName.test(part) ? part : '…')).join('=');
  });
  const shown = [...new Set(names.length > maxShown ? [...names.slice(0, maxShown), '…'] : names)];
  const meantOf = new Map(unknown.map(({ name, meant }) => [name, meant]));
  const corrected = new URLSearchParams();
  for (const [name, value] of new URLSearchParams(querystring)) {
    const known = meantOf.has(name) ? meantOf.get(name) : { name };
    if (known !== undefined && (known.name === name || !(known.name in query)))
      corrected.append(known.name, known.value ?? value);
  }
  const meant = [...meantOf.values()].flatMap((each) =>
    each === undefined ? [] : [Object.values(each).join('=')],
  );
  return {
    names: shown,
    meant:
      meant.length === 0 ? undefined : { names: [...new Set(meant)], url: `${path}?${corrected}` },
  };
}

function unknownNames(query: object, declared: readonly string[]): Unknown[] {
  return unknownParameters(query, declared).map(({ name, meant }) => ({
    name,
    meant: meant === undefined ? undefined : { name: meant },
  }));
}

/** Values that the operation's own description says are taken as not said; a form sends those empty that nobody chose. */
function unknownValues(
  query: Context['query'],
  shape: Readonly<Record<string, z.core.$ZodType>>,
): Unknown[] {
  return Object.entries(shape).flatMap(([name, described]) => {
    const value = query[name] || undefined;
    const caught = unwrapped(described);
    if (value === undefined || !(caught instanceof z.ZodCatch)) return [];
    const { innerType } = caught.def;
    if (z.safeParse(innerType, value).success) return [];
    const plain = unwrapped(innerType);
    const values = plain instanceof z.ZodEnum ? plain.options.map(String) : [];
    const meant = closestName(String(value), values);
    return [
      {
        name,
        value: String(value),
        meant: meant === undefined ? undefined : { name, value: meant },
      },
    ];
  });
}

function unwrapped(described: z.core.$ZodType): z.core.$ZodType {
  return described instanceof z.ZodOptional || described instanceof z.ZodDefault
    ? unwrapped(described.def.innerType)
    : described;
}
