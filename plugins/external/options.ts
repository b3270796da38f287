import { z } from 'zod';
import type { OptionProblem } from '../../src/plugin/plugin.ts';
import { isLoopbackHost } from './bounded-fetch.ts';
import { labelOption } from './label-option.ts';

const names = z.array(z.string().min(1)).default([]);

/** An absolute http or https URL. */
export const providerUrl = z
  .string()
  .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''), 'is not an https:// URL');

/** Claims are named by dotted paths, such as `realm_access.roles`. */
export const claimPath = z.string().min(1);

/** The options that all external providers have, as Zod fields of a strict object. */
export const externalOptions = {
  client_id: z
    .string()
    .min(1)
    .optional()
    .describe("The hub's client id at the provider; hub-client-<uuid> when left out."),
  client_secret: z.string().min(1).optional().describe("The hub's client secret at the provider."),
  scope: z
    .union([
      z.string().transform((text) => text.split(/[\s,]+/).filter(Boolean)),
      z.array(z.string()),
    ])
    .optional()
    .describe('Scopes to request from the provider, as a list or separated by spaces.'),
  username_claim: claimPath.optional().describe('The claim with the user name, as a dotted path.'),
  strip_domain: z
    .string()
    .regex(/^[^@\s]+$/, 'is a domain such as example.org, without @')
    .transform((domain) => domain.toLowerCase())
    .optional()
    .describe(
      'Domain to strip from user names: with example.org, ada@example.org becomes ada. Names in other domains stay whole.',
    ),
  login_service: labelOption
    .optional()
    .describe('Name of the provider on the login page, or an object with one per language.'),
  groups_claim: claimPath.optional().describe('The claim that lists groups, as a dotted path.'),
  roles_claim: claimPath.optional().describe('The claim that lists roles, as a dotted path.'),
  allowed_groups: names.describe('Only members of one of these groups may log in.'),
  admin_groups: names.describe(
    'Members of one of these groups are administrators; others are not.',
  ),
  allowed_domains: z
    .array(
      z
        .string()
        .regex(
          /^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/,
          'must be a domain such as example.org, in ASCII',
        )
        .transform((domain) => domain.toLowerCase()),
    )
    .default([])
    .describe('Only verified e-mail addresses of these domains may log in.'),
  extra_authorize_params: z
    .record(z.string(), z.string())
    .default({})
    .describe("Further parameters of the provider's authorization URL."),
  logout_redirect_url: providerUrl
    .optional()
    .describe('Where the browser goes after logout, instead of the provider.'),
  allow_insecure_requests: z
    .boolean()
    .default(false)
    .describe('Allow http:// for a provider on this machine. Only for tests.'),
  clock_tolerance: z
    .number()
    .nonnegative()
    .max(600)
    .default(30)
    .describe("Tolerated difference to the provider's clock, in seconds."),
  request_timeout: z
    .number()
    .positive()
    .max(60)
    .default(8)
    .describe('Seconds the provider has to respond.'),
};

const externalSchema = z.object(externalOptions);

/** The options that all external providers have, checked. */
export type ExternalOptions = z.output<typeof externalSchema>;

/** The options that only providers with discovery (OpenID Connect) have. */
export const discoveryOptions = {
  registration_token: z
    .string()
    .min(1)
    .optional()
    .describe('Initial access token for dynamic client registration.'),
  logout_at_provider: z
    .boolean()
    .default(true)
    .describe("Whether logging out of the hub ends the provider's session too."),
  second_factor_acr: names.describe(
    'Values of the acr claim that prove a second factor, for Authenticator.require_second_factor; mfa among the amr (RFC 8176) always does.',
  ),
};

/** Names of the options that may be given as `{"env": …}` or `{"file": …}`. */
export const secretOptions = ['client_secret', 'registration_token'];

/** Finds URLs without encryption, and rules about groups without the claim that lists them. */
export function findExternalProblems(
  options: Omit<ExternalOptions, 'scope'>,
  urls: Readonly<Record<string, string | undefined>>,
  defaults: { readonly groupsClaim?: string | undefined } = {},
): OptionProblem[] {
  const problems: OptionProblem[] = [];
  for (const [option, url] of Object.entries(urls)) {
    const { protocol, hostname } = new URL(url ?? 'https://localhost');
    if (protocol === 'https:') continue;
    if (!isLoopbackHost(hostname)) problems.push({ option, message: 'must begin with https://' });
    else if (!options.allow_insecure_requests) {
      const message = 'must begin with https://, or allow_insecure_requests be true for tests';
      problems.push({ option, message });
    }
  }
  if ((options.groups_claim ?? defaults.groupsClaim) !== undefined) return problems;
  for (const option of ['allowed_groups', 'admin_groups'] as const) {
    if (options[option].length === 0) continue;
    problems.push({ option, message: 'needs groups_claim, the claim that lists the groups' });
  }
  return problems;
}
