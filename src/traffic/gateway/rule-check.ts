import { HubError } from '../../platform/errors.ts';
import type { CanonicalPath } from '../../platform/http/canonical-path.ts';
import { text } from '../../platform/texts/text.ts';
import type { Route } from '../proxy/route.ts';
import type { Authorized } from './access-policy.ts';

/** What the rules of a route say of a request: `HubError` refuses it, `everyone` lets it pass unasked. */
export type RuleCheck = HubError | 'everyone' | UsersOnly;

/** Who has access to the service may pass, if in one of the groups where there are any. */
export interface UsersOnly {
  readonly groups: readonly string[] | undefined;
}

const allUsers: UsersOnly = { groups: undefined };

/** Asks the rules of a route about a request; the end of a login is not theirs to decide. */
export function checkRules(
  route: Route,
  { pathname }: Pick<CanonicalPath, 'pathname'>,
  method: string,
  addressOf: () => string,
): RuleCheck {
  const { judge, prefix } = route;
  if (judge === undefined) return allUsers;
  if (method === 'GET' && pathname === `${prefix}oauth_callback`) return allUsers;
  const path = belowPrefix(pathname, prefix);
  const verdict = judge({ path, method, address: addressOf() });
  if (verdict === 'ambiguous') return ambiguousForRules();
  switch (verdict.allow) {
    case 'everyone':
      return 'everyone';
    case 'users':
      return verdict.groups === undefined ? allUsers : { groups: verdict.groups };
    case 'nobody':
      return new HubError('forbidden', text`This part of the app is closed.`);
  }
}

/** Whether a visitor who has access to the service is in one of the groups that a rule names. */
export function isInGroups(
  { groups: own }: Pick<Authorized, 'groups'>,
  { groups }: UsersOnly,
): boolean {
  return groups === undefined || groups.some((group) => own.includes(group));
}

export function notInGroups(): HubError {
  return new HubError('forbidden', text`You do not have permission to open this part of the app.`, {
    hint: text`Ask an administrator if you should have it.`,
  });
}

/** The path below a prefix that it is known to have, however either is encoded. */
function belowPrefix(pathname: string, prefix: string): string {
  if (pathname.startsWith(prefix)) return pathname.slice(prefix.length - 1);
  const segments = prefix.split('/').length - 1;
  return `/${pathname.split('/').slice(segments).join('/')}`;
}

function ambiguousForRules(): HubError {
  return new HubError('invalid_path', text`This address can be read in more than one way.`, {
    hint: text`Write it as the app does: in its case, without doubled slashes, semicolons or encoded slashes.`,
  });
}
