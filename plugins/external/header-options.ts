import { z } from 'zod';
import type { OptionProblem, PluginSurroundings } from '../../src/plugin/plugin.ts';
import { isLoopbackHost } from './bounded-fetch.ts';
import { labelOption } from './label-option.ts';
import { claimPath } from './options.ts';

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'is not the name of a header')
  .transform((name) => name.toLowerCase());

/** The hub removes such headers before it forwards a request: an app that saw one could log in by it. */
const keptFromApps = /^(?:x-hub-.+|.+-jwt-assertion|x-authentik-jwt)$/;

export const optionsSchema = z.strictObject({
  user_header: headerName.default('x-forwarded-user').describe('Header with the user name.'),
  secret: z
    .string()
    .min(16, 'needs at least 16 characters, such as those of: openssl rand -hex 32')
    .optional()
    .describe(
      'Value the proxy sends in `secret_header`, so that no other program can impersonate a user.',
    ),
  secret_header: headerName
    // The hub removes such headers before it forwards a request, so no app learns the secret.
    .refine((name) => name.startsWith('x-hub-'), 'must begin with X-Hub-, so that no app sees it')
    .default('x-hub-proxy-secret')
    .describe('Header in which the proxy sends `secret`; must begin with X-Hub-.'),
  jwt_header: headerName
    .refine(
      (name) => keptFromApps.test(name),
      'must end with -Jwt-Assertion or begin with X-Hub-, so that no app sees it (or be X-authentik-jwt)',
    )
    .optional()
    .describe(
      'Header with a signed JWT that names the user, instead of user_header: X-Pomerium-Jwt-Assertion, Cf-Access-Jwt-Assertion.',
    ),
  jwt_keys: z
    .string()
    .min(1)
    .optional()
    .describe("The issuer's key set (JWKS): an https:// URL, or a file."),
  jwt_issuer: z.string().min(1).optional().describe('Required `iss` claim.'),
  jwt_audience: z
    .union([z.string().min(1), z.array(z.string().min(1)).min(1)])
    .optional()
    .describe("Required `aud` claim: the issuer's name for this hub."),
  jwt_user_claim: claimPath
    .default('email')
    .describe('The claim with the user name, as a dotted path.'),
  jwt_groups_claim: claimPath.optional().describe('The claim that lists groups, as a dotted path.'),
  allow_insecure_requests: z
    .boolean()
    .default(false)
    .describe('Allow http:// in jwt_keys for an address of this machine. Only for tests.'),
  email_header: headerName.optional().describe('Header with the e-mail address.'),
  name_header: headerName.optional().describe('Header with the display name.'),
  groups_header: headerName.optional().describe('Header with the groups of the user.'),
  groups_separator: z.string().min(1).default(',').describe('Separator between groups.'),
  allowed_groups: z.array(z.string().min(1)).default([]).describe('Groups that may log in.'),
  admin_groups: z.array(z.string().min(1)).default([]).describe('Groups of administrators.'),
  logout_url: z
    .string()
    .refine((text) => /^(\/|https?:\/\/)/.test(text), 'is neither a path nor an http(s) URL')
    .optional()
    .describe("Where the browser goes after logout, to end the proxy's own login."),
  label: labelOption
    .default('Single sign-on')
    .describe('Name of this login method, or an object with one per language.'),
});

export type HeaderOptions = z.output<typeof optionsSchema>;

/** Headers that anybody can send through any proxy, or that mean something else. */
const unfit = new Set(['authorization', 'cookie', 'host', 'user-agent', 'referer', 'origin']);

/** Finds what is wrong with the options together, or in this place. */
export function findProblems(
  options: HeaderOptions,
  { trustedLocalAddress }: Pick<PluginSurroundings, 'trustedLocalAddress'>,
): OptionProblem[] {
  const problems: OptionProblem[] = [...findJwtProblems(options)];
  const { secret, jwt_header, secret_header } = options;
  if (secret === undefined && jwt_header === undefined && trustedLocalAddress !== undefined) {
    problems.push({
      option: 'secret',
      message:
        `is needed: the hub believes a proxy at ${trustedLocalAddress}, on this machine, so each program ` +
        "here, a user's server among them, could log in as any user. Let the proxy send a secret in " +
        `${secret_header} or a signed name (jwt_header), or listen on a Unix socket (Hub.bind_url) that ` +
        'only the proxy may open',
    });
  }
  for (const option of [
    'user_header',
    'email_header',
    'name_header',
    'groups_header',
    'secret_header',
  ] as const) {
    const name = options[option];
    if (name !== undefined && unfit.has(name)) {
      problems.push({ option, message: 'is a header that browsers set themselves' });
    }
  }
  const groupsOption = jwt_header === undefined ? 'groups_header' : 'jwt_groups_claim';
  for (const option of ['allowed_groups', 'admin_groups'] as const) {
    if (options[option].length > 0 && options[groupsOption] === undefined) {
      problems.push({ option, message: `needs ${groupsOption}` });
    }
  }
  return problems;
}

function* findJwtProblems(options: HeaderOptions): Generator<OptionProblem> {
  const { jwt_header, jwt_keys = '', allow_insecure_requests } = options;
  if (jwt_header === undefined) {
    const [stray] = (
      ['jwt_keys', 'jwt_issuer', 'jwt_audience', 'jwt_groups_claim'] as const
    ).filter((option) => options[option] !== undefined);
    if (stray !== undefined) yield { option: stray, message: 'needs jwt_header' };
    return;
  }
  // Without them any token of the same keys would do (RFC 8725 §3.8 and §3.9).
  for (const option of ['jwt_keys', 'jwt_issuer', 'jwt_audience'] as const) {
    if (options[option] === undefined) yield { option, message: 'is needed with jwt_header' };
  }
  for (const option of ['email_header', 'name_header', 'groups_header'] as const) {
    if (options[option] !== undefined) {
      const message = 'is not signed: with jwt_header the claims say it (jwt_groups_claim)';
      yield { option, message };
    }
  }
  const isOpen = jwt_keys.startsWith('http://');
  if (!isOpen) return;
  if (!allow_insecure_requests || !isLoopbackHost(URL.parse(jwt_keys)?.hostname ?? '')) {
    yield { option: 'jwt_keys', message: 'must be an https:// URL or a file' };
  }
}
