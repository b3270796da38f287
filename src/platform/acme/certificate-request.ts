import { createHash, KeyObject, type webcrypto } from 'node:crypto';
import type * as X509 from '@peculiar/x509';
import type { KeyPair } from '../http/tls/certificate-source.ts';

/** Of every key that the hub makes for a certificate. */
export const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const { subtle } = globalThis.crypto;

/** Loaded where a certificate is ordered or made, since it is large; it works only behind the other package. */
export async function loadX509(): Promise<typeof X509> {
  await import('reflect-metadata');
  return await import('@peculiar/x509');
}

/** Makes a key and asks for a certificate of it for these names (RFC 2986), in base64url of DER as RFC 8555 §7.4 wants. */
export async function createCertificateRequest(
  names: readonly string[],
): Promise<{ readonly csr: string; readonly key: string }> {
  const x509 = await loadX509();
  const keys = await createKeys();
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    keys,
    signingAlgorithm: algorithm,
    extensions: [namesExtension(x509, names)],
  });
  return { csr: request.toString('base64url'), key: exportKey(keys) };
}

/** id-pe-acmeIdentifier (RFC 8737 §6.1). */
const acmeIdentifier = '1.3.6.1.5.5.7.1.31';
const octetString = Buffer.of(0x04, 32);

/** The certificate that answers a tls-alpn-01 challenge (RFC 8737 §3). */
export async function createChallengeCertificate(
  name: string,
  keyAuthorization: string,
): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await createKeys();
  const digest = createHash('sha256').update(keyAuthorization).digest();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: `CN=${name}`,
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      namesExtension(x509, [name]),
      new x509.Extension(acmeIdentifier, true, Buffer.concat([octetString, digest])),
    ],
  });
  return { certificate: certificate.toString('pem'), key: exportKey(keys) };
}

/** How RFC 9773 §4.1 names a certificate; undefined where it does not name the key of its authority. */
export async function certificateIdOf(pem: string): Promise<string | undefined> {
  const x509 = await loadX509();
  const certificate = new x509.X509Certificate(pem);
  const { keyId } = certificate.getExtension(x509.AuthorityKeyIdentifierExtension) ?? {};
  if (keyId === undefined) return undefined;
  return [keyId, certificate.serialNumber]
    .map((hex) => Buffer.from(hex, 'hex').toString('base64url'))
    .join('.');
}

export const createKeys = async () => await subtle.generateKey(algorithm, true, ['sign', 'verify']);

function namesExtension(x509: typeof X509, names: readonly string[]): X509.Extension {
  return new x509.SubjectAlternativeNameExtension(names.map((value) => ({ type: 'dns', value })));
}

/** In PEM (PKCS #8). */
export function exportKey({ privateKey }: webcrypto.CryptoKeyPair): string {
  return KeyObject.from(privateKey).export({ type: 'pkcs8', format: 'pem' }).toString();
}
