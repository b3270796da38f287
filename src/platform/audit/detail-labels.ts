import { type Text, text } from '../texts/text.ts';
import type { AuditReason } from './reason-labels.ts';

/** What each fact in the detail of a action is called on pages. */
export const detailLabels = {
  access: text`Visitors`,
  action: text`Action`,
  address: text`Address`,
  admin: text`Administrator`,
  authenticator: text`Login by`,
  changed: text`Changed`,
  client: text`Application`,
  code: text`Error code`,
  count: text`Number`,
  expires_at: text`Expires`,
  former: text`Formerly`,
  from: text`From the instance`,
  group: text`Group`,
  has_new_token: text`New token`,
  host: text`Host`,
  languages: text`Languages`,
  left: text`Left`,
  level: text`Level`,
  managed: text`Run by the hub`,
  message: text`Message`,
  name: text`Name`,
  needs_restart: text`Need a restart`,
  note: text`Note`,
  operation: text`Operation`,
  origin: text`Managed by`,
  page: text`Page`,
  properties: text`Properties`,
  purpose: text`Purpose`,
  reason: text`Reason`,
  revoked_links: text`Links ended`,
  revoked_tokens: text`Tokens revoked`,
  role: text`Role`,
  scopes: text`Scopes`,
  seconds: text`Seconds`,
  servers: text`Servers`,
  session: text`Session`,
  starts: text`Starts`,
  system_account: text`Account on the machine`,
  target: text`Target`,
  text: text`Text`,
  tokens: text`Tokens`,
  until: text`Until`,
  url: text`Address`,
  user: text`User`,
  users: text`Users`,
  version: text`Version`,
} as const satisfies Readonly<Record<string, Text>>;

/** Facts of a action by these names. */
export type AuditDetail = Readonly<
  Partial<Record<Exclude<keyof typeof detailLabels, 'reason'>, unknown>>
> & { readonly reason?: AuditReason };
