import type { NewUser } from '../identity/accounts/user-imports.ts';
import { letOthers } from '../platform/concurrency/let-others.ts';
import { HubError } from '../platform/errors.ts';
import { readCsv } from '../platform/protocol/csv.ts';
import { text } from '../platform/texts/text.ts';

/** What a column can hold. */
export type NewUserColumn = keyof typeof headings;

/** Users as a table lists them. */
export interface NewUsersFile {
  readonly users: readonly (NewUser & { readonly line: number })[];
  readonly columns: readonly NewUserColumn[];
  /** Headings of columns that nothing is made of. */
  readonly unused: readonly string[];
}

/** Lines of one table. */
export const maxFileLines = 100_000;

/** What a first line may call a column, in lower case, letters alone. */
const headings = {
  name: ['username', 'user', 'login', 'account', 'benutzername', 'benutzer', 'kennung', 'name'],
  displayName: ['displayname', 'fullname', 'realname', 'anzeigename', 'vollername', 'name'],
  email: ['email', 'mail', 'emailaddress', 'emailadresse'],
  groups: ['groups', 'group', 'course', 'gruppen', 'gruppe', 'kurs'],
  roles: ['roles', 'role', 'rollen', 'rolle'],
  isAdmin: ['admin', 'administrator', 'isadmin'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

const allColumns = Object.keys(headings) as NewUserColumn[];
const yes = /^(?:1|true|yes|y|x|ja|j|wahr|admin|administrator)$/i;

/**
 * Reads a list of user names, or a table whose first line may name its columns; else they are the name, and then the
 * display name, e-mail address, groups and roles as far as there are columns. Throws `bad_request` for what is neither.
 */
export async function readNewUsers(typed: string): Promise<NewUsersFile> {
  const { lines, unclosed } = await readCsv(typed);
  if (unclosed !== undefined)
    throw new HubError('bad_request', text`Line ${unclosed}: a quotation mark is not closed.`);
  if (lines.length === 0) throw new HubError('bad_request', text`Type at least one name.`);
  if (lines.length > maxFileLines)
    throw new HubError('bad_request', text`More than ${maxFileLines} lines.`);
  const [first = [], ...others] = lines.map(({ cells }) => cells);
  const named = columnsByHeading(first);
  if (named.size > 0 && !named.has('name')) {
    throw new HubError('bad_request', text`No column has user names.`, {
      hint: text`Name the columns in the first line: ${'username, display name, email, groups, role'}.`,
    });
  }
  const hasHeadings = named.size > 0;
  const columns = hasHeadings ? named : columnsByPlace([first, ...others]);
  const used = new Set(columns.values());
  const users: NewUsersFile['users'][number][] = [];
  for (const { line, cells } of lines.slice(hasHeadings ? 1 : 0)) {
    await letOthers(line);
    users.push({ line, ...userOf((column) => cells[columns.get(column) ?? -1] ?? '') });
  }
  const hasAdmins = users.some(({ isAdmin }) => isAdmin);
  return {
    users,
    columns: allColumns.filter(
      (column) => columns.has(column) || (column === 'isAdmin' && hasAdmins),
    ),
    unused: hasHeadings ? first.filter((heading, at) => heading !== '' && !used.has(at)) : [],
  };
}

function userOf(cell: (column: NewUserColumn) => string): NewUser {
  const roles = listIn(cell('roles'));
  const others = roles.filter((role) => !/^admin(?:istrator)?$/i.test(role));
  return {
    name: cell('name'),
    displayName: cell('displayName') || undefined,
    email: cell('email') || undefined,
    groups: listIn(cell('groups')),
    roles: others,
    isAdmin: yes.test(cell('isAdmin')) || others.length < roles.length,
  };
}

/** `name` is that of the account only where no other column is. */
function columnsByHeading(cells: readonly string[]): ReadonlyMap<NewUserColumn, number> {
  const plain = cells.map((cell) => cell.toLowerCase().replaceAll(/[^\p{L}]/gu, ''));
  const found = new Map<NewUserColumn, number>();
  for (const column of allColumns) {
    const taken = new Set(found.values());
    for (const heading of headings[column]) {
      const at = plain.findIndex((cell, index) => cell === heading && !taken.has(index));
      if (at !== -1 && !found.has(column)) found.set(column, at);
    }
  }
  return found;
}

function columnsByPlace(lines: readonly (readonly string[])[]): ReadonlyMap<NewUserColumn, number> {
  const width = Math.max(...lines.slice(0, 1000).map((cells) => cells.length));
  const isEmail = (at: number) =>
    lines.filter((cells) => cells[at]?.includes('@')).length * 2 > lines.length;
  const emailAt = Array.from({ length: width }, (_, at) => at).find((at) => at > 0 && isEmail(at));
  const rest = (['name', 'displayName', 'groups', 'roles'] as const).values();
  const found = new Map<NewUserColumn, number>();
  for (let at = 0; at < width; at += 1) {
    const column = at === emailAt ? 'email' : rest.next().value;
    if (column !== undefined) found.set(column, at);
  }
  return found;
}

const listIn = (cell: string) => cell.split(/[;,|]/).flatMap((each) => each.trim() || []);
