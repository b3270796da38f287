import { constants, createHash } from 'node:crypto';
import { createSecureContext, type SecureContext, type SecureContextOptions } from 'node:tls';
import type { ClientTrust, KeyPair } from './certificate-source.ts';

/** TLS 1.2 and 1.3 with the suites that RFC 9325 §4.2 recommends, and no renegotiation. */
export const tlsSettings = {
  minVersion: 'TLSv1.2',
  ciphers: [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-RSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-RSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
    'ECDHE-RSA-CHACHA20-POLY1305',
  ].join(':'),
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const satisfies SecureContextOptions;

/** Throws what OpenSSL says of a pair, or of a list, that it cannot use. */
export function createContext(pair: KeyPair, trust: ClientTrust = {}): SecureContext {
  return createSecureContext(contextOptions(pair, trust));
}

/** No session goes on that began while clients were judged by other authorities or lists. */
export function contextOptions({ certificate: cert, key }: KeyPair, trust: ClientTrust) {
  const { clientAuthorities: ca, revocationLists: lists = [] } = trust;
  return {
    ...tlsSettings,
    cert,
    key,
    ca,
    ...(lists.length > 0 && { crl: [...lists] }),
    sessionIdContext: sessionContextOf(trust),
  };
}

export function sessionContextOf({ clientAuthorities = '', revocationLists = [] }: ClientTrust) {
  const digest = createHash('sha256').update([clientAuthorities, ...revocationLists].join('\n'));
  return digest.digest('hex').slice(0, 32);
}
