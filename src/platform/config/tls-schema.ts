import { z } from 'zod';
import { bindUrl, count } from './common-schema.ts';

/** Settings of `Hub` about TLS at `Hub.bind_url`. */
export const tlsSettings = {
  certificates: z
    .array(
      z.strictObject({
        certificate: z
          .string()
          .min(1)
          .describe('File in PEM: the certificate, then each that issued the one before.'),
        key: z
          .string()
          .min(1)
          .describe('File in PEM with its private key, which other users may not read.'),
      }),
    )
    .default([])
    .describe(
      'Certificates of an https:// bind_url. A browser gets the one with the name that it asks for, else the one with its wildcard, else the first. Read again when the files change.',
    ),
  client_authorities: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File in PEM with the authorities whose certificates visitors may show at an https:// bind_url. Nobody needs one but at routes with `"client_certificate": "required"` in their `limits`.',
    ),
  redirect_bind_url: bindUrl
    .optional()
    .describe(
      'Where the hub sends those who come by plain http to https, such as http://0.0.0.0:80/: with status 308, and for hosts alone that it has certificates for.',
    ),
  hsts_max_age_days: count
    .default(365)
    .describe(
      'Days for which browsers that were here by https come by nothing else (Strict-Transport-Security); 0 ends that.',
    ),
  http2: z
    .boolean()
    .default(false)
    .describe(
      'Whether browsers may use HTTP/2 at an https:// bind_url, where event streams of many tabs share one connection. WebSockets stay on HTTP/1.1.',
    ),
};
