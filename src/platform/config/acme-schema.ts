import { z } from 'zod';
import { secretReference } from './common-schema.ts';

/** Ways to show an authority that names are of the hub: RFC 8555 §8.3 and §8.4, RFC 8737. */
const challengeTypes = ['tls-alpn-01', 'http-01', 'dns-01'] as const;

/** `Hub.acme`. */
export const acmeSection = z
  .strictObject({
    accept_terms: z
      .boolean()
      .refine((accepts) => accepts, 'must be true: say that you accept the terms of the authority')
      .describe("That you accept the authority's terms of service; its directory names them."),
    email: z
      .email('is not an e-mail address')
      .optional()
      .describe('Where the authority may reach you about the account.'),
    directory: z
      .url({ protocol: /^https$/, error: 'is not an https:// URL' })
      .default('https://acme-v02.api.letsencrypt.org/directory')
      .describe("Address of the authority's directory; Let's Encrypt by default."),
    challenge: z
      .enum(challengeTypes)
      .default('tls-alpn-01')
      .describe(
        'How the authority sees that the names are yours: `tls-alpn-01` asks bind_url, at port 443 of each name; `http-01` asks redirect_bind_url, at port 80; `dns-01` looks for a record that dns_command writes, and is the only one for wildcards.',
      ),
    dns_command: z
      .array(z.string())
      .min(1)
      .optional()
      .describe(
        'For dns-01: a program and its words, among them `{action}` (`add` or `remove`), `{name}` and `{value}` of a TXT record. It ends when all name servers have the change, within five minutes, and has the environment of the hub.',
      ),
    external_account: z
      .strictObject({
        id: z.string().min(1).describe('The key id that the authority gave you.'),
        key: secretReference.describe('The MAC key that came with it, in base64url.'),
      })
      .optional()
      .describe('An account that you have at the authority, where it wants one (RFC 8555 §7.3.4).'),
  })
  .describe(
    'Certificates from an authority, ordered and renewed by the hub itself (ACME, RFC 8555): one for the host names of public_url, subdomain_host with its wildcard, proxy_api and extra_routes. One instance orders it, all use it.',
  );
