import { z } from 'zod';
import { defineOidcPlugin } from './external/oidc-plugin.ts';
import { discoveryOptions, externalOptions, providerUrl } from './external/options.ts';

const optionsSchema = z.strictObject({
  issuer: providerUrl.describe('Your organisation, such as https://example.okta.com.'),
  ...externalOptions,
  ...discoveryOptions,
});

/** Okta. Groups come with the scope `groups`, into the claim `groups`. */
export default defineOidcPlugin({
  name: 'okta',
  section: 'OktaAuthenticator',
  label: 'Okta',
  icon: 'okta',
  optionsSchema,
  issuerOf: ({ issuer }) => ({ url: issuer, option: 'issuer' }),
  defaults: {
    scopes: ['openid', 'profile', 'email', 'groups', 'offline_access'],
    groupsClaim: 'groups',
  },
});
