import type { ProviderEndpoints } from '../../../identity/oauth/endpoints/metadata-endpoint.ts';
import { openidScopes } from '../../../identity/oauth/openid/claims.ts';
import { text } from '../../../platform/texts/text.ts';
import type { Service } from '../../../workloads/services/service.ts';
import { copyableText } from '../elements/secret.ts';
import { type HtmlValue, html } from '../html.ts';

/** What an app is configured with to log its users in by the hub. */
interface ClientValues extends ProviderEndpoints {
  readonly clientId: string;
  /** Stands for the secret, of which the hub keeps a hash at most. */
  readonly secret: string;
  readonly redirectUri: string;
  /** Address of the app: the redirect URI without its last part, which is the same wherever the app is. */
  readonly appUrl: string;
}

/** The configuration of an app, in its own form. */
interface ClientRecipe {
  readonly app: string;
  /** Of the app's redirect URI, behind its address. */
  readonly callback: string;
  readonly configuration: (values: ClientValues) => string;
}

const scopes = openidScopes.join(' ');
const discoveryOf = (issuer: string) => `${issuer}/.well-known/openid-configuration`;
/** A string of Ruby in which nothing is replaced. */
const quoted = (value: string) => `'${value.replaceAll(/[\\']/g, String.raw`\$&`)}'`;

/** As in docs/how-to/log-other-apps-in.md, which a test compares. */
export const clientRecipes: readonly ClientRecipe[] = [
  {
    app: 'Grafana',
    callback: '/login/generic_oauth',
    configuration: (client) => `[auth.generic_oauth]
enabled = true
name = Hub
client_id = ${client.clientId}
client_secret = ${client.secret}
scopes = ${scopes}
auth_url = ${client.authorization_endpoint}
token_url = ${client.token_endpoint}
api_url = ${client.userinfo_endpoint}
use_pkce = true
login_attribute_path = preferred_username
groups_attribute_path = groups
role_attribute_path = contains(groups[*], 'grafana-admins') && 'Admin' || 'Viewer'
`,
  },
  {
    app: 'GitLab',
    callback: '/users/auth/openid_connect/callback',
    configuration: (client) => `gitlab_rails['omniauth_providers'] = [{
  name: 'openid_connect',
  label: 'Hub',
  args: {
    name: 'openid_connect',
    issuer: ${quoted(client.issuer)},
    discovery: true,
    scope: ['openid', 'profile', 'email'],
    response_type: 'code',
    client_auth_method: 'basic',
    uid_field: 'sub',
    pkce: true,
    client_options: {
      identifier: ${quoted(client.clientId)},
      secret: ${quoted(client.secret)},
      redirect_uri: ${quoted(client.redirectUri)}
    }
  }
}]
`,
  },
  {
    app: 'Nextcloud',
    callback: '/apps/user_oidc/code',
    configuration: (client) => `Identifier: Hub
Client ID: ${client.clientId}
Client secret: ${client.secret}
Discovery endpoint: ${discoveryOf(client.issuer)}
Scope: ${scopes}
User ID mapping: sub
`,
  },
  {
    app: 'Argo CD',
    callback: '/auth/callback',
    configuration: (client) => `url: ${client.appUrl}
oidc.config: |
  name: Hub
  issuer: ${client.issuer}
  clientID: ${JSON.stringify(client.clientId)}
  clientSecret: ${client.secret}
  requestedScopes: ${JSON.stringify(openidScopes)}
`,
  },
  {
    app: 'Apache, with mod_auth_openidc',
    callback: '/redirect_uri',
    configuration: (client) => `OIDCProviderMetadataURL ${discoveryOf(client.issuer)}
OIDCClientID ${client.clientId}
OIDCClientSecret ${client.secret}
OIDCRedirectURI ${client.redirectUri}
OIDCCryptoPassphrase a-long-random-text
OIDCScope "${scopes}"
OIDCRemoteUserClaim preferred_username
<Location ${URL.parse(client.appUrl)?.pathname ?? '/'}>
  AuthType openid-connect
  Require valid-user
</Location>
`,
  },
];

/** What any app asks for. */
export function clientFacts(service: Service, endpoints: ProviderEndpoints): string {
  const { clientId, idTokenAlgorithm, redirectUris } = service;
  return [
    ['issuer', endpoints.issuer],
    ['discovery', discoveryOf(endpoints.issuer)],
    ['client id', clientId],
    ...(hasSecret(service) ? [['client secret', secret]] : []),
    ['redirect URI', redirectUris.map((uri) => URL.parse(uri, endpoints.issuer)?.href).join(' ')],
    ['scopes', scopes],
    ['authorization', endpoints.authorization_endpoint],
    ['token', endpoints.token_endpoint],
    ['userinfo', endpoints.userinfo_endpoint],
    ['keys', endpoints.jwks_uri],
    ['logout', endpoints.end_session_endpoint],
    ['algorithm', idTokenAlgorithm],
  ]
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('');
}

/** The values of a service for an app: its own where the app's redirect URI is registered. */
export function clientValues(
  { clientId, redirectUris }: Pick<Service, 'clientId' | 'redirectUris'>,
  { callback }: ClientRecipe,
  endpoints: ProviderEndpoints,
): ClientValues {
  const redirectUri =
    redirectUris.find((uri) => uri.startsWith('http') && uri.endsWith(callback)) ??
    (redirectUris.map((uri) => URL.parse(uri)?.origin).find(Boolean) ?? 'https://app.example.org') +
      callback;
  const appUrl = redirectUri.slice(0, -callback.length);
  return { ...endpoints, clientId, secret, redirectUri, appUrl };
}

const secret = 'the-api-token-of-the-service';
const hasSecret = (service: Service) =>
  !service.isPublic && service.jwks === undefined && service.jwksUri === undefined;

/** What to paste into the app that a service is, for one that checks its visitors itself. */
export function clientSection(service: Service, endpoints: ProviderEndpoints): HtmlValue {
  if (service.access !== 'service') return false;
  return html`<section class="block"><h2>${text`Log in to this app by the hub`}</h2>
<p class="soft">${
    !hasSecret(service)
      ? text`It has no secret.`
      : service.source === 'api'
        ? text`Its secret is the token that was shown once, when the service was added.`
        : text`Its secret is its api_token in the configuration file.`
  }</p>
<div class="stack">${hasSecret(service) && clientRecipes.map((recipe) => recipeDetails(service, recipe, endpoints))}
<details class="more"><summary>${text`Any other app`}</summary>${copyableText(clientFacts(service, endpoints), text`Any other app`)}</details></div></section>`;
}

function recipeDetails(service: Service, recipe: ClientRecipe, endpoints: ProviderEndpoints) {
  const values = clientValues(service, recipe, endpoints);
  return html`<details class="more"><summary>${recipe.app}</summary><div class="stack">
${!service.redirectUris.includes(values.redirectUri) && html`<p>${text`First add the app's redirect URI to the service, such as ${values.redirectUri}.`}</p>`}
${copyableText(recipe.configuration(values), recipe.app)}</div></details>`;
}
