import { z } from 'zod';
import { defineOidcPlugin } from './external/oidc-plugin.ts';
import { discoveryOptions, externalOptions, providerUrl } from './external/options.ts';

const optionsSchema = z.strictObject({
  tenant: z
    .string()
    .regex(/^[A-Za-z0-9.-]+$/, 'must be the id or the domain of a tenant')
    .default('organizations')
    .describe('Id or domain of your tenant; "organizations" for every organisation.'),
  allowed_tenants: z
    .array(z.string().min(1))
    .default([])
    .describe('Only accounts of the tenants with these ids may log in.'),
  issuer: providerUrl.optional().describe('The full issuer URL, instead of tenant.'),
  ...externalOptions,
  ...discoveryOptions,
});

/** Microsoft Entra ID. Groups are ids, in the claim `groups` of the ID token. */
export default defineOidcPlugin({
  name: 'microsoft',
  section: 'MicrosoftAuthenticator',
  label: 'Microsoft',
  icon: 'microsoft',
  optionsSchema,
  issuerOf: ({ tenant, issuer }) => ({
    url: issuer ?? `https://login.microsoftonline.com/${tenant}/v2.0`,
    option: issuer === undefined ? 'tenant' : 'issuer',
  }),
  defaults: {
    scopes: ['openid', 'profile', 'email', 'offline_access'],
    groupsClaim: 'groups',
  },
  gatesOf: ({ allowed_tenants: anyOf }) =>
    anyOf.length === 0 ? [] : [{ option: 'allowed_tenants', claim: 'tid', anyOf }],
});
