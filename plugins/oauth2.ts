import { z } from 'zod';
import { defineOAuth2Plugin } from './external/oauth2-plugin.ts';
import { claimPath, externalOptions, providerUrl } from './external/options.ts';

const optionsSchema = z.strictObject({
  authorize_url: providerUrl.describe("The provider's authorization endpoint."),
  token_url: providerUrl.describe("The provider's token endpoint."),
  userdata_url: providerUrl.describe("Endpoint that returns the user's profile as JSON."),
  issuer: providerUrl
    .optional()
    .describe("The provider's issuer identifier, if it has one (RFC 9207)."),
  subject_claim: claimPath
    .optional()
    .describe('A claim that never changes for a person; sub or id when left out.'),
  basic_auth: z
    .boolean()
    .default(false)
    .describe('Send client_secret in the Authorization header instead of the form.'),
  ...externalOptions,
});

/** Any OAuth 2 provider whose endpoints are known. */
export default defineOAuth2Plugin({
  name: 'oauth2',
  section: 'OAuth2Authenticator',
  label: 'OAuth 2',
  icon: 'generic',
  optionsSchema,
  endpointsOf: (options) => ({
    authorizeUrl: options.authorize_url,
    tokenUrl: options.token_url,
    userdataUrl: options.userdata_url,
    issuer: options.issuer,
  }),
  urlsOf: ({ authorize_url, token_url, userdata_url }) => ({
    authorize_url,
    token_url,
    userdata_url,
  }),
  sendsSecretInHeader: ({ basic_auth }) => basic_auth,
  subjectClaimsOf: ({ subject_claim }) =>
    subject_claim === undefined ? ['sub', 'id'] : [subject_claim],
  defaults: { scopesOf: () => [], usernameClaim: 'username' },
});
