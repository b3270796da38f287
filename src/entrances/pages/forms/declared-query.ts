import type { Context } from 'koa';
import { z } from 'zod';
import type { OperationDeclaration } from '../../../operations/operation.ts';
import { meantBy, unknownParameters } from '../../../operations/unknown-parameters.ts';
import type { PassedOver } from '../elements/layout-props.ts';
import type { PageOptions } from './binding.ts';

/** The parameters that the address of a page may have. */
type Declared = readonly string[] | 'any';

/** The query of an address as its page takes it. */
interface PageQuery {
  /** What is declared: a page can read nothing else. */
  readonly search: URLSearchParams;
  /** What is not declared or cannot be, and the address with what was meant in its place. */
  readonly passedOver?: PassedOver | undefined;
}

/** What an address says by what the operation and its page declare. */
export function readQuery(
  asked: Pick<Context, 'path' | 'query' | 'querystring'>,
  { query }: Pick<OperationDeclaration, 'query'>,
  { query: ofPage = [] }: Pick<PageOptions, 'query'> = {},
): PageQuery {
  const declared = ofPage === 'any' ? ofPage : [...Object.keys(query?.shape ?? {}), ...ofPage];
  const given = [...new URLSearchParams(asked.querystring)];
  return {
    search: new URLSearchParams(
      declared === 'any' ? given : given.filter(([name]) => declared.includes(name)),
    ),
    passedOver: passedOverAt(asked, declared, query?.shape),
  };
}

/** A link must not have the page say what its author likes. */
const shownName = /^[\w.-]{1,32}$/;
const maxShown = 3;

/** What an address says and its page passes over: a name, or a name and its value. */
interface Unknown {
  readonly said: readonly string[];
  /** What was most likely meant; empty where nothing is alike. */
  readonly meant: readonly string[];
}

function passedOverAt(
  { path, query, querystring }: Pick<Context, 'path' | 'query' | 'querystring'>,
  declared: Declared,
  shape: z.core.$ZodShape = {},
): PassedOver | undefined {
  const unknown = [
    ...(declared === 'any' ? [] : unknownNames(query, declared)),
    ...unknownValues(query, shape),
  ];
  if (unknown.length === 0) return undefined;
  const names = unknown.map(({ said }) =>
    said.map((part) => (shownName.test(part) ? part : '…')).join('='),
  );
  const shown = [...new Set(names.length > maxShown ? [...names.slice(0, maxShown), '…'] : names)];
  const meantOf = new Map(unknown.map(({ said: [name], meant }) => [name, meant]));
  const corrected = new URLSearchParams();
  for (const [name, value] of new URLSearchParams(querystring)) {
    const [known, meantValue = value] = meantOf.get(name) ?? [name];
    if (known !== undefined && (known === name || !(known in query)))
      corrected.append(known, meantValue);
  }
  const meant = new Set(unknown.map((each) => each.meant.join('=')).filter((each) => each !== ''));
  return {
    names: shown,
    meant: meant.size === 0 ? undefined : { names: [...meant], url: `${path}?${corrected}` },
  };
}

function unknownNames(query: object, declared: readonly string[]): Unknown[] {
  return unknownParameters(query, declared).map(({ name, meant }) => ({
    said: [name],
    meant: meant === undefined ? [] : [meant],
  }));
}

/** Values that the operation takes as not said; a form sends those empty that nobody chose. */
function unknownValues(query: Context['query'], shape: z.core.$ZodShape): Unknown[] {
  return Object.entries(shape).flatMap(([name, described]) => {
    const caught = described instanceof z.ZodOptional ? described.unwrap() : described;
    const value = query[name] ?? '';
    if (value === '' || !(caught instanceof z.ZodCatch)) return [];
    const { error } = z.safeParse(caught.unwrap(), value);
    if (error === undefined) return [];
    const values = error.issues.flatMap((issue) => ('values' in issue ? issue.values : []));
    const meant = meantBy(String(value), values.map(String));
    return [{ said: [name, String(value)], meant: meant === undefined ? [] : [name, meant] }];
  });
}
