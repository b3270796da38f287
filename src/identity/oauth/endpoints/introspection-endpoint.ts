import type { Middleware } from 'koa';
import type { AccessTarget } from '../../../platform/protocol/client-id.ts';
import { formatScopeList } from '../../../platform/protocol/scope-list.ts';
import { authorizationToken } from '../../../platform/protocol/token-parameter.ts';
import { type Caller, checkAccess } from '../../rbac/access-check.ts';
import type { Authorizer } from '../../rbac/authorizer.ts';
import type { Membership } from '../../rbac/membership.ts';
import { parseScope, presentScopes, splitServerValue } from '../../rbac/scope.ts';
import type { Client } from '../clients/client.ts';
import type { ClientAuthentication } from '../clients/client-authentication.ts';
import { OAuthError } from '../oauth-error.ts';
import { requireParameter } from '../request-parameters.ts';
import type { TokenVerifier } from '../tokens/token-verifier.ts';
import { type CountRefusal, createJsonEndpoint, type OAuthRequest } from './json-endpoint.ts';

/** What an active token is (RFC 7662 §2.2). */
export interface IntrospectionResponse {
  readonly active: boolean;
  readonly scope?: string;
  readonly client_id?: string;
  readonly username?: string;
  readonly token_type?: 'Bearer';
  readonly exp?: number;
  readonly sub?: string;
  readonly iss?: string;
  /** Addresses of the services and servers that its scopes name one by one. */
  readonly aud?: readonly string[];
}

const inactive: IntrospectionResponse = { active: false };

/** Decides whether the one who asks may know about a token. */
type MayKnow = (about: Caller, membership: Membership) => boolean;

/**
 * The introspection endpoint (RFC 7662 §2). A client learns about tokens issued to it and about
 * tokens that give access to it: those it can be presented with. The bearer of a token with
 * `read:tokens` learns about the tokens of the users that scope covers. All else is inactive to them.
 */
export function createIntrospectionEndpoint({
  clientAuthentication,
  tokenVerifier,
  authorizer,
  issuer,
  addressOf,
  countRefusal,
}: {
  readonly clientAuthentication: ClientAuthentication;
  readonly tokenVerifier: TokenVerifier;
  readonly authorizer: Pick<Authorizer, 'membership'>;
  readonly issuer: string;
  /** Of a service or server for browsers; undefined for a service that is gone. */
  readonly addressOf: (target: AccessTarget) => string | undefined;
  readonly countRefusal: CountRefusal;
}): Middleware {
  const parameters = ['token', 'token_type_hint'];
  return createJsonEndpoint({ parameters, countRefusal }, async (request) => {
    const mayKnow = await authorize(request);
    const about = await tokenVerifier.verify(requireParameter(request.form, 'token'));
    if (about === undefined) return inactive;
    return mayKnow(about, await authorizer.membership()) ? describe(about) : inactive;
  });

  async function authorize(request: OAuthRequest): Promise<MayKnow> {
    const client = await clientAuthentication.find(request);
    if (client !== undefined) return mayClientKnow(client);
    // Only from the header: the form's `token` is the one asked about.
    const presented = authorizationToken(request.authorization);
    if (presented === undefined || presented.isBasic) {
      throw new OAuthError('invalid_client', 'The caller did not authenticate itself.');
    }
    const caller = await tokenVerifier.verify(presented.token);
    if (caller === undefined) {
      throw new OAuthError('invalid_token', 'The token of the caller is unknown or expired.');
    }
    return mayBearerKnow(caller);
  }

  function describe(about: Caller): IntrospectionResponse {
    const { owner, user, accessToken, scopes } = about;
    const aud = [...scopes].flatMap((scope) => {
      const target = accessTargetOf(scope);
      return (target && addressOf(target)) ?? [];
    });
    return {
      active: true,
      ...(scopes.size > 0 && { scope: formatScopeList(presentScopes(scopes)) }),
      ...(accessToken?.clientId !== undefined && { client_id: accessToken.clientId }),
      ...(owner.kind === 'user' && { username: owner.name }),
      token_type: 'Bearer',
      ...(accessToken?.expiresAt !== undefined && {
        exp: Math.floor(accessToken.expiresAt.getTime() / 1000),
      }),
      // Names of users and services may be equal, and a user's may change.
      sub: user?.id ?? `service:${owner.name}`,
      iss: issuer,
      ...(aud.length > 0 && { aud }),
    };
  }
}

/** The one service or server that a scope gives access to. */
function accessTargetOf(scope: string): AccessTarget | undefined {
  const { name, filter: { kind, value } = {} } = parseScope(scope);
  if (value === undefined) return undefined;
  if (name === 'access:services' && kind === 'service') return { kind, name: value };
  if (name === 'access:servers' && kind === 'server') return { kind, ...splitServerValue(value) };
  return undefined;
}

function mayClientKnow(client: Client): MayKnow {
  return (about, membership) =>
    about.accessToken?.clientId === client.clientId ||
    (client.accessScope !== undefined &&
      checkAccess(about.scopes, client.accessScope, undefined, membership) === 'granted');
}

function mayBearerKnow(caller: Caller): MayKnow {
  const mayKnowAny = [...caller.scopes].some((scope) => scope.split('!')[0] === 'read:tokens');
  if (!mayKnowAny) throw new OAuthError('insufficient_scope', 'The scope read:tokens is needed.');
  return ({ owner }, membership) =>
    checkAccess(caller.scopes, 'read:tokens', owner, membership) === 'granted';
}
