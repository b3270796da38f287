import { z } from 'zod';
import { bindUrl, count } from './common-schema.ts';

/** Settings of `Hub` about TLS at `Hub.bind_url` and within the hub. */
export const tlsSettings = {
  internal_ssl: z
    .boolean()
    .default(false)
    .describe(
      "Whether the hub runs its own certificate authority for an https:// hub_bind_url and admits only clients with a certificate from it: other instances, gateway processes and commands. The authority's key is stored encrypted in the database; everything is renewed automatically.",
    ),
  internal_certs_location: z
    .string()
    .min(1)
    .default('internal-ssl')
    .describe(
      'Folder for the certificates that internal_ssl issues: gateway.pem and gateway-ca.pem, for gateway processes on this and other machines.',
    ),
  trusted_alt_names: z
    .array(z.string().regex(/^[A-Za-z0-9:._-]+$/, 'is no host name or address'))
    .default([])
    .describe(
      'Additional host names and addresses for the certificate of an https:// hub_bind_url, such as that of a load balancer. Those of hub_bind_url, hub_connect_url, instance_url and this machine are included anyway.',
    ),
  certificates: z
    .array(
      z.strictObject({
        certificate: z
          .string()
          .min(1)
          .describe(
            'PEM file: the certificate followed by its chain, each certificate before its issuer.',
          ),
        key: z
          .string()
          .min(1)
          .describe('PEM file with its private key. Other users must not be able to read it.'),
      }),
    )
    .default([])
    .describe(
      'Certificates for an https:// bind_url, chosen by the name the browser asks for (SNI): an exact match, then a wildcard, then the first. Reloaded when the files change.',
    ),
  client_authorities: z
    .string()
    .min(1)
    .optional()
    .describe(
      'PEM file with the authorities whose client certificates are accepted at an https:// bind_url. Only routes with `"client_certificate": "required"` in their `limits` demand one.',
    ),
  client_revocation_lists: z
    .array(z.string().min(1))
    .default([])
    .describe(
      'Revocation lists (CRLs) of client_authorities, in PEM or DER, reloaded when they change. If any are given, every authority needs a current one; otherwise its certificates are rejected.',
    ),
  redirect_bind_url: bindUrl
    .optional()
    .describe(
      'Address that redirects http to https with status 308, such as http://0.0.0.0:80/. Only hosts that the hub has certificates for are redirected.',
    ),
  hsts_max_age_days: count
    .default(365)
    .describe(
      'Days for which browsers must use https after a visit (Strict-Transport-Security); 0 turns it off again.',
    ),
  http2: z
    .boolean()
    .default(false)
    .describe(
      'Whether an https:// bind_url offers HTTP/2, so that the event streams of many tabs share one connection. WebSockets stay on HTTP/1.1.',
    ),
};
