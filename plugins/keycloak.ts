import { z } from 'zod';
import { defineOidcPlugin } from './external/oidc-plugin.ts';
import { discoveryOptions, externalOptions, providerUrl } from './external/options.ts';

const optionsSchema = z.strictObject({
  issuer: providerUrl.describe('The realm, such as https://login.example.org/realms/staff.'),
  ...externalOptions,
  ...discoveryOptions,
});

/** A realm of Keycloak. Groups come with a "Group Membership" mapper, into the claim `groups`. */
export default defineOidcPlugin({
  name: 'keycloak',
  section: 'KeycloakAuthenticator',
  label: 'Keycloak',
  icon: 'keycloak',
  optionsSchema,
  issuerOf: ({ issuer }) => ({ url: issuer, option: 'issuer' }),
  defaults: { groupsClaim: 'groups' },
});
