import { z } from 'zod';

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
};
