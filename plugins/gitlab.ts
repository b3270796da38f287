import { z } from 'zod';
import { defineOidcPlugin } from './external/oidc-plugin.ts';
import { discoveryOptions, externalOptions, providerUrl } from './external/options.ts';

const optionsSchema = z.strictObject({
  issuer: providerUrl.default('https://gitlab.com').describe('Your GitLab.'),
  ...externalOptions,
  ...discoveryOptions,
});

/** GitLab. Groups are those of GitLab, by their full path. */
export default defineOidcPlugin({
  name: 'gitlab',
  section: 'GitLabAuthenticator',
  label: 'GitLab',
  icon: 'gitlab',
  optionsSchema,
  issuerOf: ({ issuer }) => ({ url: issuer, option: 'issuer' }),
  defaults: { groupsClaim: 'groups' },
});
