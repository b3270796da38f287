import { z } from 'zod';
import { defineOidcPlugin } from './external/oidc-plugin.ts';
import { discoveryOptions, externalOptions, providerUrl } from './external/options.ts';

const optionsSchema = z.strictObject({
  issuer: providerUrl.describe('The provider: where /.well-known/openid-configuration is.'),
  ...externalOptions,
  ...discoveryOptions,
});

/** Any OpenID Connect provider, found by its issuer (OpenID Connect Discovery 1.0). */
export default defineOidcPlugin({
  name: 'oidc',
  section: 'OIDCAuthenticator',
  label: 'OpenID Connect',
  icon: 'generic',
  optionsSchema,
  issuerOf: ({ issuer }) => ({ url: issuer, option: 'issuer' }),
});
