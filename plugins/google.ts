import { z } from 'zod';
import { defineOidcPlugin } from './external/oidc-plugin.ts';
import { discoveryOptions, externalOptions, providerUrl } from './external/options.ts';

const optionsSchema = z.strictObject({
  issuer: providerUrl
    .default('https://accounts.google.com')
    .describe('A provider that stands in for Google.'),
  hosted_domain: z
    .union([
      z
        .string()
        .min(1)
        .transform((domain) => [domain]),
      z.array(z.string().min(1)),
    ])
    .default([])
    .describe('Only accounts of these Google Workspace domains may log in.'),
  ...externalOptions,
  ...discoveryOptions,
});

/** Google. Users are named by their verified e-mail address. */
export default defineOidcPlugin({
  name: 'google',
  section: 'GoogleAuthenticator',
  label: 'Google',
  icon: 'google',
  optionsSchema,
  issuerOf: ({ issuer }) => ({ url: issuer, option: 'issuer' }),
  defaults: { usernameClaim: 'email' },
  // Google knows no other prompt that stops for the user.
  askAgainParameters: { prompt: 'select_account', max_age: '0' },
  authorizeParametersOf: ({ hosted_domain: domains }) => {
    const [only, ...others] = domains;
    // Without a refresh token Google could not be asked about the user after an hour.
    const offline = { access_type: 'offline' };
    return only === undefined ? offline : { ...offline, hd: others.length === 0 ? only : '*' };
  },
  // The claim that Google signs, not the end of the address: that may be of another organisation.
  gatesOf: ({ hosted_domain: anyOf }) =>
    anyOf.length === 0 ? [] : [{ option: 'hosted_domain', claim: 'hd', anyOf }],
});
