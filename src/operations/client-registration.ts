import { z } from 'zod';
import { issuerOf } from '../identity/oauth/endpoints/metadata-endpoint.ts';
import type { AccessTokenStore } from '../identity/oauth/tokens/access-token-store.ts';
import type { TokenIssuer } from '../identity/oauth/tokens/token-issuer.ts';
import type { Caller } from '../identity/rbac/access-check.ts';
import { hashSecret } from '../platform/crypto/hash.ts';
import { randomSecret } from '../platform/crypto/random.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import {
  type ClientMetadata,
  clientMetadata,
  metadataOf,
  registeredService,
  updatedService,
} from '../workloads/services/client-metadata.ts';
import type { RuntimeService } from '../workloads/services/runtime-service.ts';
import { clientIdOf } from '../workloads/services/service.ts';
import type { ServiceAdministration } from '../workloads/services/service-administration.ts';
import { errorModel } from './models.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly serviceAdministration: Pick<
    ServiceAdministration,
    'create' | 'change' | 'delete' | 'find'
  >;
  readonly tokenIssuer: Pick<TokenIssuer, 'createApiToken'>;
  readonly accessTokens: Pick<AccessTokenStore, 'revoke'>;
  readonly publicUrl: URL;
  readonly now: () => number;
}

const refusal = z
  .object({
    error: z.enum(['invalid_redirect_uri', 'invalid_client_metadata', 'insufficient_scope']),
    error_description: z.string(),
  })
  .meta({ id: 'RegistrationError' });

const configured = clientMetadata
  .extend({
    redirect_uris: z.array(z.string()),
    client_id: z.string(),
    registration_client_uri: z.string(),
    registration_access_token: z
      .string()
      .optional()
      .describe('Good for this client alone, and as long as the token it was registered with.'),
  })
  .meta({ id: 'ConfiguredClient' });

const registered = configured
  .extend({
    client_id_issued_at: z.int(),
    client_secret: z.string().optional().describe('Of a client that has one; shown this once.'),
    client_secret_expires_at: z.literal(0).optional(),
  })
  .meta({ id: 'RegisteredClient' });

/** What is wrong with any request is said as everywhere. */
const refusalOrError = z.union([refusal, errorModel]);

const refused = {
  400: { description: 'It is not (RFC 7591 §3.2.2).', schema: refusalOrError },
  403: {
    description: 'Its redirect URIs decide who gets in, and the token may not (RFC 6750 §3.1).',
    schema: refusalOrError,
  },
} as const;

class Refusal extends Error {
  readonly error: z.output<typeof refusal>['error'];
  constructor(error: z.output<typeof refusal>['error'], description: string) {
    super(description);
    this.error = error;
  }
}

/** Throws `Refusal`. */
function readMetadata(body: unknown): ClientMetadata {
  const read = clientMetadata.safeParse(body);
  if (!read.success) {
    const { path, message } = read.error.issues[0] ?? { path: [], message: 'is malformed' };
    const isRedirect = path[0] === 'redirect_uris';
    throw new Refusal(
      isRedirect ? 'invalid_redirect_uri' : 'invalid_client_metadata',
      `${path.join('.')}: ${message}`,
    );
  }
  const { jwks, jwks_uri, token_endpoint_auth_method: method } = read.data;
  if ((jwks !== undefined || jwks_uri !== undefined) !== (method === 'private_key_jwt')) {
    const message = 'private_key_jwt needs jwks or jwks_uri, and nothing else does';
    throw new Refusal('invalid_client_metadata', message);
  }
  return read.data;
}

/** The error of the RFC for what was refused. Throws what is none. */
function answerRefusal(error: unknown) {
  const answer = <Status extends 400 | 403>(status: Status, code: Refusal['error'], why: Error) =>
    ({ status, body: { error: code, error_description: why.message } }) as const;
  if (error instanceof Refusal) return answer(400, error.error, error);
  if (!(error instanceof HubError)) throw error;
  if (error.code === 'forbidden') return answer(403, 'insufficient_scope', error);
  if (error.code === 'bad_request') return answer(400, 'invalid_client_metadata', error);
  throw error;
}

const isWithSecret = (method: string) => method.startsWith('client_secret');

/** A token for one client, which ends with the one it is made with. */
async function issueRegistrationToken(
  caller: Caller,
  clientId: string,
  { tokenIssuer }: Pick<Deps, 'tokenIssuer'>,
): Promise<string> {
  const { token } = await tokenIssuer.createApiToken({
    owner:
      caller.user === undefined
        ? { kind: 'service', name: caller.owner.name }
        : { kind: 'user', user: caller.user },
    scopes: ['admin:services', 'access:services'].map((scope) => `${scope}!service=${clientId}`),
    note: noteOf(clientId),
    granter: caller,
  });
  return token;
}

const noteOf = (clientId: string) => `Registration of ${clientId}`;

function configuredClient(
  { definition }: RuntimeService,
  token: string | undefined,
  { publicUrl }: Pick<Deps, 'publicUrl'>,
) {
  return {
    ...(metadataOf(definition) as ClientMetadata),
    client_id: clientIdOf(definition),
    registration_client_uri: `${issuerOf(publicUrl)}/hub/api/oauth2/register/${definition.name}`,
    registration_access_token: token,
  };
}

async function getClient(name: string, { serviceAdministration }: Deps): Promise<RuntimeService> {
  const service = await serviceAdministration.find(name);
  if (service === undefined) throw new HubError('not_found', text`Service ${name} does not exist`);
  return service;
}

const ofClient = {
  path: '/oauth2/register/{service}',
  tag: 'oauth',
  scopes: ['admin:services'],
  target: 'service',
} as const;

/** Dynamic client registration (RFC 7591), by who may add services, and its management by the client (RFC 7592). */
export const clientRegistrationOperations = [
  operation({
    id: 'registerClient',
    method: 'POST',
    path: '/oauth2/register',
    tag: 'oauth',
    summary: 'Register a client (RFC 7591)',
    description:
      'With an initial access token: one with `admin:services` and `access:services`. The client is a service that was added at run time, which administrators see, change and delete as such; `info.registered_by` says by whom. Who may log in to it is who is given access to that service. It is in no network of its own: its addresses have to be https, and not private.',
    scopes: ['admin:services'],
    audit: ['service.create'],
    log: 'client registered',
    needsRecentLogin: true,
    body: z.record(z.string(), z.unknown()).describe('Client metadata (RFC 7591 §2).'),
    answers: {
      201: { description: 'It is registered (§3.2.1).', schema: registered },
      ...refused,
    },
  }).handle(async ({ body, caller }, deps: Deps) => {
    const { serviceAdministration, now } = deps;
    const clientId = `client-${randomSecret(12)}`;
    try {
      const metadata = readMetadata(body);
      const made = await serviceAdministration.create(caller, clientId, {
        definition: registeredService(clientId, metadata, caller.owner.name),
        apiToken: undefined,
      });
      const token = await issueRegistrationToken(caller, clientId, deps).catch(async (error) => {
        await serviceAdministration.delete(caller, clientId, () => undefined);
        throw error;
      });
      return {
        status: 201,
        logged: { client: clientId },
        body: {
          ...configuredClient(made.service, token, deps),
          ...metadata,
          client_id_issued_at: Math.floor(now() / 1000),
          ...(isWithSecret(metadata.token_endpoint_auth_method) && {
            client_secret: made.token,
            client_secret_expires_at: 0 as const,
          }),
        },
      };
    } catch (error) {
      return answerRefusal(error);
    }
  }),
  operation({
    ...ofClient,
    id: 'readClient',
    method: 'GET',
    summary: 'Read what is registered of a client (RFC 7592)',
    description: 'With its registration access token, which the answer gives back.',
    answers: { 200: { description: 'The client (§3).', schema: configured } },
  }).handle(async ({ params, presentedToken }, deps: Deps) => ({
    status: 200,
    body: configuredClient(await getClient(params.service, deps), presentedToken(), deps),
  })),
  operation({
    ...ofClient,
    id: 'updateClient',
    method: 'PUT',
    summary: 'Replace what is registered of a client (RFC 7592)',
    description:
      'With its registration access token. What is left out goes; how the client authenticates, and what administrators gave it beside, stays.',
    audit: ['service.change'],
    log: 'client changed its registration',
    needsRecentLogin: true,
    body: z.record(z.string(), z.unknown()).describe('All client metadata, with `client_id`.'),
    answers: { 200: { description: 'The client (§3).', schema: configured }, ...refused },
  }).handle(async ({ params, body, caller, presentedToken, requireVersion }, deps: Deps) => {
    try {
      const before = await getClient(params.service, deps);
      const metadata = readMetadata(body);
      const now = configuredClient(before, undefined, deps);
      const { client_id, client_secret } = body;
      if (client_id !== now.client_id)
        throw new Refusal('invalid_client_metadata', 'client_id: is not that of the client');
      if (client_secret !== undefined && hashSecret(String(client_secret)) !== before.tokenHash)
        throw new Refusal('invalid_client_metadata', 'client_secret: is not that of the client');
      const [was, is] = [now, metadata].map(({ token_endpoint_auth_method: method }) =>
        isWithSecret(method) ? 'a secret' : method,
      );
      if (was !== is)
        throw new Refusal('invalid_client_metadata', 'token_endpoint_auth_method: has to stay');
      const { service } = await deps.serviceAdministration.change(
        caller,
        params.service,
        (definition) => ({ definition: updatedService(definition, metadata), apiToken: undefined }),
        requireVersion,
      );
      return { status: 200, body: configuredClient(service, presentedToken(), deps) };
    } catch (error) {
      return answerRefusal(error);
    }
  }),
  operation({
    ...ofClient,
    id: 'deleteClient',
    method: 'DELETE',
    summary: 'Delete a client (RFC 7592)',
    description: 'With its registration access token, which ends, too.',
    audit: ['service.delete'],
    log: 'client deleted itself',
    needsRecentLogin: true,
    answers: { 204: { description: 'It is gone (§2.3).' } },
  }).handle(async ({ params, caller, requireVersion }, deps: Deps) => {
    await deps.serviceAdministration.delete(caller, params.service, requireVersion);
    const { id, note } = caller.accessToken ?? {};
    if (id !== undefined && note === noteOf(params.service)) await deps.accessTokens.revoke(id);
  }),
];
