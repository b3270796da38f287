import { z } from 'zod';
import { orReference, secretReference } from './common-schema.ts';

/** Ways to show an authority that names are of the hub: RFC 8555 §8.3 and §8.4, RFC 8737. */
const challengeTypes = ['tls-alpn-01', 'http-01', 'dns-01'] as const;

/** `Hub.acme`. */
export const acmeSection = z
  .strictObject({
    accept_terms: z
      .boolean()
      .refine((accepts) => accepts, 'must be true: say that you accept the terms of the authority')
      .describe(
        "Confirms that you accept the authority's terms of service, which its directory links to.",
      ),
    email: orReference(z.email('is not an e-mail address'), 'is not an e-mail address')
      .optional()
      .describe('Contact address for the account.'),
    directory: z
      .url({ protocol: /^https$/, error: 'is not an https:// URL' })
      .default('https://acme-v02.api.letsencrypt.org/directory')
      .describe("The authority's directory URL; Let's Encrypt by default."),
    challenge: z
      .enum(challengeTypes)
      .default('tls-alpn-01')
      .describe(
        'How you prove control of the names: `tls-alpn-01` connects to bind_url on port 443, `http-01` to redirect_bind_url on port 80, and `dns-01` looks up a record that dns_command writes. Wildcards need `dns-01`.',
      ),
    dns_command: z
      .array(z.string())
      .min(1)
      .optional()
      .describe(
        "For dns-01: a command and its arguments, with `{action}` (`add` or `remove`), `{name}` and `{value}` of a TXT record. It runs with the hub's environment and must exit, within five minutes, once all name servers have the change.",
      ),
    external_account: z
      .strictObject({
        id: z.string().min(1).describe('Key id issued by the authority.'),
        key: secretReference.describe('Its MAC key, in base64url.'),
      })
      .optional()
      .describe('External account, for authorities that require one (RFC 8555 §7.3.4).'),
  })
  .describe(
    'Certificates ordered and renewed by the hub itself (ACME, RFC 8555): one that covers the host names of public_url, subdomain_host with its wildcard, proxy_api and extra_routes. One instance orders it; all of them use it.',
  );
