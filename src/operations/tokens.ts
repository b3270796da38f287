import { z } from 'zod';
import type { AccessToken } from '../identity/oauth/tokens/access-token.ts';
import type { AccessTokenStore } from '../identity/oauth/tokens/access-token-store.ts';
import { maxNoteLength, type TokenIssuer } from '../identity/oauth/tokens/token-issuer.ts';
import type { Authorizer } from '../identity/rbac/authorizer.ts';
import type { RoleStore } from '../identity/rbac/role-store.ts';
import { presentScopes, readScope } from '../identity/rbac/scope.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { closestName } from '../platform/config/suggestion.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import { credentials, names, time } from './models.ts';
import { type ModelOf, operation } from './operation.ts';
import { outsideFilter } from './perform.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'findByName' | 'getByName'>;
  readonly accessTokens: AccessTokenStore;
  readonly tokenIssuer: Pick<TokenIssuer, 'createApiToken'>;
  readonly roles: Pick<RoleStore, 'findByName'>;
  readonly authorizer: Authorizer;
}

const tokenModel = z
  .object({
    kind: z.literal('api_token'),
    id: z.string(),
    user: z.string().optional(),
    service: z.string().optional(),
    roles: names,
    scopes: names.describe('What the token may do now.'),
    note: z.string(),
    created: time,
    last_activity: time.nullable(),
    expires_at: time.nullable(),
    session_id: z.string().nullable(),
    oauth_client: z.string().describe('`hub` for tokens that were made by hand.'),
  })
  .meta({ id: 'Token' });

const newTokenModel = tokenModel
  .extend({ token: z.string().describe('The token itself; shown this once.') })
  .meta({ id: 'NewToken' });

/** The members that make a token less than all its owner may do. */
const narrowing = ['expires_in', 'scopes', 'roles'] as const;

const creation = z
  .looseObject({
    note: z.string().max(maxNoteLength).default('Requested via the API'),
    expires_in: z
      .int()
      .min(0)
      .nullish()
      .describe('Seconds; as long as the hub lets tokens last when 0 or left out.'),
    scopes: names.optional().describe('Everything the owner may do, unless given.'),
    roles: names.optional().describe('In place of `scopes`.'),
    auth: credentials
      .optional()
      .describe(
        'In place of a token: who calls, where a login method of the hub takes a form. Counts as a login, and makes no session. Refused for an account with a second factor.',
      ),
  })
  // Clients send members that mean nothing here. One that was meant for these would make a token that
  // lasts longer or may do more than it was to.
  .check(({ value, issues }) => {
    for (const name of Object.keys(value)) {
      const meant = closestName(name, narrowing);
      if (meant === undefined || meant === name) continue;
      const message = `there is no such member; did you mean ${meant}?`;
      issues.push({ code: 'custom', input: value, path: [name], message });
    }
  })
  .refine(({ scopes, roles }) => scopes === undefined || roles === undefined, {
    message: 'Give scopes or roles, not both.',
  })
  .prefault({});

/** Access tokens of users. */
export const tokenOperations = [
  operation({
    id: 'listTokens',
    method: 'GET',
    path: '/users/{name}/tokens',
    tag: 'tokens',
    summary: "List a user's tokens",
    scopes: ['read:tokens'],
    target: 'user',
    answers: {
      200: { description: 'The tokens.', schema: z.object({ api_tokens: z.array(tokenModel) }) },
    },
  }).handle(async ({ params }, { users, accessTokens, authorizer }: Deps) => {
    const user = await users.getByName(params.name);
    const tokens = await accessTokens.listOfUser(user.id);
    const models = await Promise.all(tokens.map((token) => present(token, authorizer)));
    return { status: 200, body: { api_tokens: models } };
  }),
  operation({
    id: 'createToken',
    byCommand: true,
    method: 'POST',
    path: '/users/{name}/tokens',
    audit: ['token.create'],
    tag: 'tokens',
    summary: 'Make a token for a user',
    description:
      'A token holds no more than its owner and its maker may do. Made with another token, it ends with that one: it expires no later, and when that one is revoked or its login ends, it ends too. Tokens made on the token page, with a login cookie or with the configured token of a service last by themselves.',
    scopes: ['tokens'],
    needsRecentLogin: true,
    takesPassword: true,
    actsOnUser: true,
    target: 'user',
    outsideFilter: 'forbidden',
    body: creation,
    answers: { 201: { description: 'The token, this once.', schema: newTokenModel } },
  }).handle(async ({ params, body, caller }, { users, roles, ...deps }: Deps) => {
    const user = await users.findByName(params.name);
    if (user === undefined) throw outsideFilter();
    const ofRoles = body.roles && (await scopesOfRoles(body.roles, roles));
    // Roles that allow nothing make a token that may do nothing.
    const scopes = body.scopes ?? ofRoles ?? ['inherit'];
    const issued = await deps.tokenIssuer.createApiToken({
      granter: caller,
      owner: { kind: 'user', user },
      scopes,
      note: body.note,
      ...(body.expires_in == null || body.expires_in === 0
        ? {}
        : { expiresInSeconds: body.expires_in }),
    });
    const token = await deps.accessTokens.findById(issued.id);
    if (token === undefined)
      throw new HubError('internal', text`The token vanished while it was made.`);
    const model = await present(token, deps.authorizer);
    return { status: 201, body: { ...model, token: issued.token } };
  }),
  operation({
    id: 'getToken',
    method: 'GET',
    path: '/users/{name}/tokens/{id}',
    tag: 'tokens',
    summary: 'Read what is known of a token',
    scopes: ['read:tokens'],
    target: 'user',
    answers: { 200: { description: 'The token, without its secret.', schema: tokenModel } },
  }).handle(async ({ params }, deps: Deps) => ({
    status: 200,
    body: await present(await tokenOf(params, deps), deps.authorizer),
  })),
  operation({
    id: 'revokeToken',
    method: 'DELETE',
    path: '/users/{name}/tokens/{id}',
    audit: ['token.revoke'],
    tag: 'tokens',
    summary: 'Revoke a token',
    description:
      "A token of an application takes the application's other tokens of the user along.",
    scopes: ['tokens'],
    alwaysForOneself: true,
    actsOnUser: true,
    target: 'user',
    answers: { 204: { description: 'It is revoked.' } },
  }).handle(async ({ params }, deps: Deps) => {
    const token = await tokenOf(params, deps);
    // One application holds several tokens of a user: withdrawing its access means all of them.
    if (token.clientId === undefined || token.userId === undefined)
      await deps.accessTokens.revoke(token.id);
    else await deps.accessTokens.revokeByClientAndUser(token.clientId, token.userId);
  }),
];

/** What roles allow a token of a user. What they say of the server or service that holds them is left out. */
async function scopesOfRoles(
  roleNames: readonly string[],
  roles: Pick<RoleStore, 'findByName'>,
): Promise<readonly string[]> {
  const scopes: string[] = [];
  for (const name of roleNames) {
    const role = await roles.findByName(name);
    if (role === undefined) throw new HubError('bad_request', text`There is no such role.`);
    scopes.push(...role.scopes.filter((scope) => !isOfItsClient(scope)));
  }
  return scopes;
}

/** Whether a scope is for the server or the service that a token is of: `access:servers!server`. */
function isOfItsClient(scope: string): boolean {
  const filter = readScope(scope).scope?.filter;
  return filter !== undefined && filter.kind !== 'user' && filter.value === undefined;
}

/** The token of this id, when it is that user's: the caller was allowed no other user's. */
async function tokenOf(
  { name, id }: { readonly name: string; readonly id: string },
  { users, accessTokens }: Pick<Deps, 'users' | 'accessTokens'>,
): Promise<AccessToken> {
  const user = await users.getByName(name);
  const token = (await accessTokens.listOfUser(user.id)).find((each) => each.id === id);
  if (token !== undefined) return token;
  throw new HubError('not_found', text`This user has no such token.`);
}

async function present(
  token: AccessToken,
  authorizer: Authorizer,
): Promise<ModelOf<typeof tokenModel>> {
  const scopes = await authorizer.effectiveScopes({ owner: token.owner, scopes: token.scopes });
  return {
    kind: 'api_token',
    id: token.id,
    [token.owner.kind]: token.owner.name,
    roles: [],
    scopes: presentScopes(scopes),
    note: token.note,
    created: token.createdAt.toISOString(),
    last_activity: token.lastUsedAt?.toISOString() ?? null,
    expires_at: token.expiresAt?.toISOString() ?? null,
    session_id: token.sessionId ?? null,
    oauth_client: token.clientId ?? 'hub',
  };
}
