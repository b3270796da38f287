import { z } from 'zod';
import { defineOidcPlugin } from './external/oidc-plugin.ts';
import { discoveryOptions, externalOptions, providerUrl } from './external/options.ts';

const optionsSchema = z
  .strictObject({
    domain: z
      .string()
      .regex(/^[A-Za-z0-9.-]+$/, 'must be a host name such as example.eu.auth0.com')
      .optional()
      .describe('Your domain at Auth0, such as example.eu.auth0.com.'),
    issuer: providerUrl.optional().describe('The full issuer URL, instead of domain.'),
    ...externalOptions,
    ...discoveryOptions,
  })
  .refine(({ domain, issuer }) => (domain === undefined) !== (issuer === undefined), {
    message: 'give either domain or issuer',
    path: ['domain'],
  });

/** Auth0. Users are named by their verified e-mail address. */
export default defineOidcPlugin({
  name: 'auth0',
  section: 'Auth0Authenticator',
  label: 'Auth0',
  icon: 'auth0',
  optionsSchema,
  issuerOf: ({ domain, issuer }) =>
    issuer === undefined
      ? { url: `https://${domain}/`, option: 'domain' }
      : { url: issuer, option: 'issuer' },
  defaults: {
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    usernameClaim: 'email',
  },
});
