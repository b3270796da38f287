import { FilterParser } from 'ldapts';
import { z } from 'zod';
import type { OptionProblem, PluginSurroundings } from '../../src/plugin/plugin.ts';
import { labelOption } from '../external/label-option.ts';

const texts = z
  .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
  .transform((value) => [value].flat());
const attribute = z.string().regex(/^[A-Za-z][A-Za-z0-9;-]*$/, 'is not the name of an attribute');

/** The options of the LDAP authenticator, as they stand in the configuration. */
export const optionsSchema = z.strictObject({
  url: texts.describe('ldaps:// or ldap:// address of the directory; several are tried in order.'),
  start_tls: z
    .boolean()
    .default(true)
    .describe('Whether an ldap:// connection is encrypted before anything is sent over it.'),
  allow_insecure: z
    .boolean()
    .default(false)
    .describe('Send passwords unencrypted. Only for a directory on the same machine.'),
  tls_ca: z
    .string()
    .min(1)
    .optional()
    .describe(
      "CA certificates (PEM) that the directory's certificate is verified with; the system's by default.",
    ),
  bind_dn_template: texts
    .optional()
    .describe('DN of a user, {username} replaced; several are tried in order.'),
  user_search_base: z.string().min(1).optional().describe('Base DN for user searches.'),
  user_filter: z
    .string()
    .default('(objectClass=*)')
    .describe('Filter that an entry must match to be a user.'),
  bind_dn: z.string().min(1).optional().describe('Account that the hub searches with.'),
  bind_password: z.string().min(1).optional().describe('Password of that account.'),
  username_attribute: attribute.default('uid').describe('Attribute with the user name.'),
  login_attributes: z
    .array(attribute)
    .min(1)
    .optional()
    .describe('Attributes that users may log in with; username_attribute by default.'),
  id_attribute: attribute
    .optional()
    .describe('Attribute that never changes, such as entryUUID; the user name by default.'),
  display_attribute: attribute.default('mail').describe('Attribute shown on the account page.'),
  name_attributes: z
    .array(attribute)
    .default(['displayName', 'cn'])
    .describe('Attributes with the display name; the first non-empty one is used.'),
  email_attribute: attribute.default('mail').describe('Attribute with the e-mail address.'),
  group_search_base: z.string().min(1).optional().describe('Base DN for group searches.'),
  group_filter: z
    .string()
    .default('(|(member={dn})(uniqueMember={dn})(memberUid={username}))')
    .describe('Filter that finds the groups of a user; {dn} and {username} are replaced.'),
  group_name_attribute: attribute.default('cn').describe('Attribute with the group name.'),
  allowed_groups: z.array(z.string().min(1)).default([]).describe('Groups that may log in.'),
  admin_groups: z.array(z.string().min(1)).default([]).describe('Groups of administrators.'),
  timeout: z.number().positive().default(5).describe('Seconds the directory has to respond.'),
  label: labelOption
    .default('Directory account')
    .describe('Name on the login page, or an object with one per language.'),
});

export type LdapOptions = z.output<typeof optionsSchema>;

/** Finds options that contradict each other, or that would send passwords in the clear. */
export function findProblems(options: LdapOptions, _around: PluginSurroundings): OptionProblem[] {
  const problems: OptionProblem[] = [];
  const report = (option: string, message: string) => problems.push({ option, message });

  for (const text of options.url) {
    const url = URL.parse(text);
    const isLdap = url?.protocol === 'ldap:' || url?.protocol === 'ldaps:';
    if (!isLdap || url.hostname === '' || url.pathname.length > 1) {
      report('url', 'must look like ldaps://directory.example.org or ldap://directory.example.org');
    } else if (url.protocol === 'ldap:' && !options.start_tls && !options.allow_insecure) {
      report('start_tls', 'must be true: passwords would be sent unencrypted otherwise');
    }
  }
  const { bind_dn_template: templates, user_search_base: base } = options;
  if ((templates === undefined) === (base === undefined)) {
    report('', 'needs either bind_dn_template or user_search_base');
  }
  if (templates?.some((template) => !template.includes('{username}')) === true) {
    report('bind_dn_template', 'must hold {username}');
  }
  if ((options.bind_dn === undefined) !== (options.bind_password === undefined)) {
    // An empty password would bind anonymously, which the directory calls a success.
    report('bind_password', 'goes together with bind_dn');
  }
  if (templates !== undefined && options.bind_dn !== undefined) {
    report('bind_dn', 'is not used with bind_dn_template');
  }
  for (const option of ['user_filter', 'group_filter'] as const) {
    if (!isFilter(options[option])) report(option, 'is not a filter (RFC 4515)');
  }
  for (const option of ['allowed_groups', 'admin_groups'] as const) {
    if (options[option].length > 0 && options.group_search_base === undefined) {
      report(option, 'needs group_search_base: without it no user is known to be in a group');
    }
  }
  return problems;
}

function isFilter(template: string): boolean {
  try {
    FilterParser.parseString(template.replaceAll(/\{(?:dn|username)\}/g, 'x'));
    return true;
  } catch {
    return false;
  }
}
