import { z } from 'zod';
import { randomSecret } from '../platform/crypto/random.ts';
import { HubError } from '../platform/errors.ts';
import { clientMetadata, registeredService } from '../workloads/services/client-metadata.ts';
import type { ServiceAdministration } from '../workloads/services/service-administration.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly serviceAdministration: Pick<ServiceAdministration, 'create'>;
  readonly now: () => number;
}

const refusal = z
  .object({
    error: z.enum(['invalid_redirect_uri', 'invalid_client_metadata', 'insufficient_scope']),
    error_description: z.string(),
  })
  .meta({ id: 'RegistrationError' });

const registered = clientMetadata
  .extend({
    client_id: z.string(),
    client_id_issued_at: z.int(),
    client_secret: z.string().optional().describe('Of a client that has one; shown this once.'),
    client_secret_expires_at: z.literal(0).optional(),
  })
  .meta({ id: 'RegisteredClient' });

/** Dynamic client registration (RFC 7591), by who may add services. */
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
      400: { description: 'It is not (§3.2.2).', schema: refusal },
      403: {
        description: 'Its redirect URIs decide who gets in, and the token may not (RFC 6750 §3.1).',
        schema: refusal,
      },
    },
  }).handle(async ({ body, caller }, { serviceAdministration, now }: Deps) => {
    const refuse = (error: z.output<typeof refusal>['error'], error_description: string) =>
      ({ status: 400, body: { error, error_description } }) as const;
    const read = clientMetadata.safeParse(body);
    if (!read.success) {
      const { path, message } = read.error.issues[0] ?? { path: [], message: 'is malformed' };
      const isRedirect = path[0] === 'redirect_uris';
      return refuse(
        isRedirect ? 'invalid_redirect_uri' : 'invalid_client_metadata',
        `${path.join('.')}: ${message}`,
      );
    }
    const metadata = read.data;
    const hasKeys = metadata.jwks !== undefined || metadata.jwks_uri !== undefined;
    if (hasKeys !== (metadata.token_endpoint_auth_method === 'private_key_jwt'))
      return refuse(
        'invalid_client_metadata',
        'private_key_jwt needs jwks or jwks_uri, and nothing else does',
      );
    const clientId = `client-${randomSecret(12)}`;
    const definition = registeredService(clientId, metadata, caller.owner.name);
    try {
      const made = await serviceAdministration.create(caller, clientId, {
        definition,
        apiToken: undefined,
      });
      const hasSecret = metadata.token_endpoint_auth_method.startsWith('client_secret');
      return {
        status: 201,
        logged: { client: clientId },
        body: {
          ...metadata,
          client_id: clientId,
          client_id_issued_at: Math.floor(now() / 1000),
          ...(hasSecret && { client_secret: made.token, client_secret_expires_at: 0 as const }),
        },
      };
    } catch (error) {
      if (!(error instanceof HubError)) throw error;
      if (error.code === 'forbidden') {
        const body = { error: 'insufficient_scope' as const, error_description: error.message };
        return { status: 403, body };
      }
      if (error.code !== 'bad_request') throw error;
      return refuse('invalid_client_metadata', error.message);
    }
  }),
];
