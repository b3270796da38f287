import { z } from 'zod';
import { presentScopes } from '../identity/rbac/scope.ts';
import type { JsonText } from '../platform/protocol/json-text.ts';
import type { AssertionSigner } from '../traffic/gateway/assertion.ts';
import { freeData, names, userModel } from './models.ts';
import { operation } from './operation.ts';
import { missingCredentials } from './perform.ts';
import { describeService, type ServiceDeps, serviceModel } from './services.ts';
import { presentUser, type UserDirectory } from './user-model.ts';

/** What the hub tells about itself. */
export interface HubInfo {
  readonly version: string;
  /** The version the API gives as its own: with JupyterHub software, one in its count. */
  readonly apiVersion: string;
  readonly nodeVersion: string;
  readonly spawner: string;
  readonly spawners: readonly { readonly name: string; readonly class: string }[];
  readonly authenticators: readonly { readonly name: string; readonly class: string }[];
}

export interface Deps extends ServiceDeps {
  readonly info: HubInfo;
  readonly userDirectory: UserDirectory;
  readonly assertions: Pick<AssertionSigner, 'keySet'>;
  /** The OpenAPI document; anyone may ask for it, so that it is written only once. */
  readonly describe: () => JsonText<Readonly<Record<string, unknown>>>;
}

const versions = {
  version: z.string().describe('With JupyterHub software, a version in its count.'),
  hub_version: z.string().optional().describe("The hub's own version, where `version` is not."),
};

const plugin = z.object({ class: z.string(), version: z.string() });

const identityModel = userModel
  .extend({
    ...serviceModel.partial().shape,
    kind: z.enum(['user', 'service']),
    scopes: names.describe('What the token may do now.'),
    session_id: z.string().nullable().describe('The login that the token belongs to.'),
    token_id: z.string().nullable(),
  })
  .meta({
    id: 'Identity',
    description: 'The owner of a token, with the members of User or of Service.',
  });

/** The hub itself, and who asks. */
export const infoOperations = [
  operation({
    id: 'getVersion',
    method: 'GET',
    path: '/',
    tag: 'hub',
    summary: 'Read the version of the hub',
    description: 'Needs no token, so that a client can find out what it talks to.',
    scopes: 'public',
    answers: { 200: { description: 'The version.', schema: z.object(versions) } },
  }).handle((_request, { info }: Deps) => ({
    status: 200,
    headers: { 'Access-Control-Allow-Origin': '*' },
    body: versionsOf(info),
  })),
  operation({
    id: 'getInfo',
    method: 'GET',
    path: '/info',
    tag: 'hub',
    summary: 'Read versions and the names of the plugins in use',
    scopes: ['read:hub'],
    answers: {
      200: {
        description: 'What the hub runs with.',
        schema: z.object({
          ...versions,
          node: z.string(),
          spawner: plugin,
          spawners: z.array(z.object({ name: z.string(), class: z.string() })),
          authenticator: plugin,
          authenticators: z.array(z.object({ name: z.string(), class: z.string() })),
        }),
      },
    },
  }).handle((_request, { info }: Deps) => ({
    status: 200,
    body: {
      ...versionsOf(info),
      node: info.nodeVersion,
      spawner: { class: info.spawner, version: info.version },
      spawners: info.spawners,
      authenticator: { class: info.authenticators[0]?.class ?? '', version: info.version },
      authenticators: info.authenticators,
    },
  })),
  operation({
    id: 'getIdentity',
    method: 'GET',
    path: '/user',
    tag: 'hub',
    summary: 'Read who the owner of the token is, and what it may do now',
    description:
      'A token that is unknown, expired or revoked identifies no caller: the answer is 403.',
    scopes: 'authenticated',
    answers: { 200: { description: 'The owner.', schema: identityModel } },
  }).handle(async ({ caller, may }, deps: Deps) => {
    const { owner, user, scopes, accessToken } = caller;
    const identity = {
      scopes: presentScopes(scopes),
      session_id: caller.sessionId ?? null,
      token_id: accessToken?.id ?? null,
    };
    if (owner.kind === 'service' || user === undefined) {
      const service = deps.registry.find(owner.name);
      if (service === undefined) throw missingCredentials();
      return { status: 200, body: { ...(await describeService(service, deps)), ...identity } };
    }
    const details = await deps.userDirectory.detailsOf(user);
    // Every token may know whose it is, also when it holds no scope for that.
    const model = presentUser(details, may, ['read:users:name', 'read:users:groups']);
    return { status: 200, body: { ...model, ...identity } };
  }),
  operation({
    id: 'getAssertionKeys',
    method: 'GET',
    path: '/assertion-keys',
    tag: 'hub',
    summary: 'Read the public keys that verify `X-Hub-Assertion`',
    description: 'May be kept for five minutes; ask again for a key id that is not among them.',
    scopes: 'public',
    answers: {
      200: {
        description: 'The keys (RFC 7517).',
        schema: z.object({ keys: z.array(freeData) }).meta({ id: 'KeySet' }),
      },
    },
  }).handle(async (_request, { assertions }: Deps) => ({
    status: 200,
    headers: { 'Cache-Control': 'public, max-age=300' },
    body: { keys: (await assertions.keySet()).keys.map((key) => ({ ...key })) },
  })),
  operation({
    id: 'getOpenApi',
    method: 'GET',
    path: '/openapi.json',
    tag: 'hub',
    summary: 'Read this description',
    description: 'Without the questions of gateways, which only those of the same version ask.',
    scopes: 'public',
    answers: {
      200: { description: 'OpenAPI 3.1.', schema: freeData },
      304: { description: 'The client has it already, as `If-None-Match` says.' },
    },
  }).handle((_request, { describe }: Deps) => ({
    status: 200,
    headers: { 'Cache-Control': 'public, max-age=300' },
    body: describe(),
  })),
];

function versionsOf({ version, apiVersion }: HubInfo): { version: string; hub_version?: string } {
  return apiVersion === version ? { version } : { version: apiVersion, hub_version: version };
}
