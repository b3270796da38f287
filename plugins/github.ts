import { z } from 'zod';
import type { ClaimRule } from './external/access-rules.ts';
import { type Claims, isClaims, textAt } from './external/claims.ts';
import { defineOAuth2Plugin, type ReadJson } from './external/oauth2-plugin.ts';
import { externalOptions, providerUrl } from './external/options.ts';

const names = z
  .array(
    z
      .string()
      .min(1)
      .transform((name) => name.toLowerCase()),
  )
  .default([]);

const optionsSchema = z.strictObject({
  github_url: providerUrl
    .default('https://github.com')
    .describe('GitHub, or your GitHub Enterprise Server.'),
  api_url: providerUrl.optional().describe('Its API; derived from github_url when left out.'),
  allowed_organizations: names.describe('Only members of one of these organisations may log in.'),
  allowed_teams: z
    .array(
      z
        .string()
        .regex(/^[^:\s]+:[^:\s]+$/, 'must be organisation:team')
        .transform((team) => team.toLowerCase()),
    )
    .default([])
    .describe('Only members of one of these teams may log in; each as organisation:team.'),
  ...externalOptions,
});

type Options = z.output<typeof optionsSchema>;

const perPage = 100;
const maxPages = 10;

/** GitHub. Groups are organisations and, as `organisation:team`, teams. */
export default defineOAuth2Plugin<Options>({
  name: 'github',
  section: 'GitHubAuthenticator',
  label: 'GitHub',
  icon: 'github',
  optionsSchema,
  endpointsOf: (options) => ({
    authorizeUrl: `${trimmed(options.github_url)}/login/oauth/authorize`,
    tokenUrl: `${trimmed(options.github_url)}/login/oauth/access_token`,
    userdataUrl: `${apiOf(options)}/user`,
  }),
  urlsOf: ({ github_url, api_url }) => ({ github_url, api_url }),
  askAgainParameters: { prompt: 'select_account' },
  sendsSecretInHeader: () => false,
  // The number stays; a name can be given up and taken by another user.
  subjectClaimsOf: () => ['id'],
  defaults: {
    scopesOf: (options) => [
      'read:user',
      ...(options.allowed_domains.length > 0 ? ['user:email'] : []),
      ...(needsGroups(options) ? ['read:org'] : []),
    ],
    usernameClaim: 'login',
    groupsClaim: 'groups',
  },
  grantsOf(options) {
    const rules: ClaimRule[] = [];
    for (const option of ['allowed_organizations', 'allowed_teams'] as const) {
      if (options[option].length > 0)
        rules.push({ option, claim: 'groups', anyOf: options[option] });
    }
    return rules;
  },
  async enrich(claims, options, read) {
    const [groups, email] = await Promise.all([
      needsGroups(options) ? readGroups(options, read) : undefined,
      options.allowed_domains.length > 0 ? readVerifiedEmail(options, read) : {},
    ]);
    // What the user wrote into the profile is not verified, whatever it is called.
    const { email_verified: _unverified, groups: _notOurs, ...rest } = claims;
    return { ...rest, ...email, ...(groups !== undefined && { groups }) };
  },
});

/** The names are asked for only where a rule or the configuration needs them. */
function needsGroups(options: Options): boolean {
  return (
    options.groups_claim !== undefined ||
    [
      options.allowed_organizations,
      options.allowed_teams,
      options.allowed_groups,
      options.admin_groups,
    ].some((list) => list.length > 0)
  );
}

async function readGroups(options: Options, read: ReadJson): Promise<string[]> {
  const organisations = await readAll(`${apiOf(options)}/user/memberships/orgs?state=active`, read);
  const teams = await readAll(`${apiOf(options)}/user/teams?`, read);
  return [
    ...organisations.flatMap((membership) => textAt(membership, 'organization.login') ?? []),
    ...teams.flatMap((team) => {
      const organisation = textAt(team, 'organization.login');
      const slug = textAt(team, 'slug');
      return organisation === undefined || slug === undefined ? [] : [`${organisation}:${slug}`];
    }),
  ].map((name) => name.toLowerCase());
}

async function readVerifiedEmail(options: Options, read: ReadJson): Promise<Claims> {
  const addresses = await readAll(`${apiOf(options)}/user/emails?`, read);
  const primary = addresses.find((address) => address['primary'] === true);
  return { email: primary?.['email'], email_verified: primary?.['verified'] === true };
}

async function readAll(url: string, read: ReadJson): Promise<Claims[]> {
  const found: Claims[] = [];
  const separator = url.endsWith('?') ? '' : '&';
  for (let page = 1; page <= maxPages; page += 1) {
    const items = await read(`${url}${separator}per_page=${perPage}&page=${page}`);
    if (!Array.isArray(items)) break;
    found.push(...items.filter(isClaims));
    if (items.length < perPage) break;
  }
  return found;
}

function apiOf({ github_url, api_url }: Options): string {
  if (api_url !== undefined) return trimmed(api_url);
  const url = trimmed(github_url);
  return url === 'https://github.com' ? 'https://api.github.com' : `${url}/api/v3`;
}

function trimmed(url: string): string {
  return url.replace(/\/+$/, '');
}
