import type { Caller } from '../../../identity/rbac/access-check.ts';
import type { Membership } from '../../../identity/rbac/membership.ts';
import { operationOf } from '../../../operations/operations.ts';
import { isAuthorised } from '../../../operations/perform.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import type { PageUrls } from '../page-urls.ts';

/** What the administration has a page of each of: the operation that it shows, and the parameter of its path. */
const adminPages = {
  user: { id: 'viewUser', parameter: 'name' },
  group: { id: 'viewGroup', parameter: 'group' },
  role: { id: 'viewRole', parameter: 'role' },
  service: { id: 'viewService', parameter: 'service' },
} as const;

type AdminPageKind = keyof typeof adminPages;

/** Whether the reader of a page may open another one, of a user for example. */
export type MayOpen = (kind: AdminPageKind, name: string) => boolean;

/** A name on pages: a link where its own page is open to the reader. */
export function adminLink(
  { urls, mayOpen }: { readonly urls: PageUrls; readonly mayOpen?: MayOpen | undefined },
  kind: AdminPageKind,
  name: string,
  shown: HtmlValue = name,
): Html {
  if (mayOpen?.(kind, name) === false) return html`${shown}`;
  const url = {
    user: urls.adminUser,
    group: urls.adminGroup,
    role: urls.adminRole,
    service: urls.adminService,
  }[kind](name);
  return html`<a href="${url}">${shown}</a>`;
}

/** The pages that a caller with `admin-ui` may open. */
export function openedBy(caller: Caller, membership: Membership): MayOpen {
  return (kind, name) => {
    const { id, parameter } = adminPages[kind];
    return isAuthorised(operationOf(id), { [parameter]: name }, caller, membership);
  };
}
