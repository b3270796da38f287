import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import { algorithm, createKeys, exportKey, loadX509 } from '../acme/certificate-request.ts';
import type { KeyPair } from '../http/tls/certificate-source.ts';

interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/** Makes an authority that signs certificates and nothing else (RFC 5280 §4.2.1.9). */
export async function makeAuthority(name: string, validity: Validity): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await createKeys();
  const { keyCertSign } = x509.KeyUsageFlags;
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: [{ CN: [name] }],
    keys,
    signingAlgorithm: algorithm,
    ...validity,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: certificate.toString('pem'), key: exportKey(keys) };
}

/**
 * Has an authority issue a certificate. Only one with `hosts` is for a server too (RFC 5280 §4.2.1.12): whoever has
 * another cannot pass for the hub.
 */
export async function issueCertificate(
  authority: KeyPair,
  {
    name,
    hosts = [],
    ...validity
  }: Validity & { readonly name: string; readonly hosts?: readonly string[] },
): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await createKeys();
  const issuer = new x509.X509Certificate(authority.certificate);
  const signingKey = await webcrypto.subtle.importKey(
    'pkcs8',
    x509.PemConverter.decodeFirst(authority.key),
    algorithm,
    false,
    ['sign'],
  );
  const { clientAuth, serverAuth } = x509.ExtendedKeyUsage;
  const certificate = await x509.X509CertificateGenerator.create({
    subject: [{ CN: [name] }],
    issuer: issuer.subject,
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: algorithm,
    ...validity,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension(
        hosts.length === 0 ? [clientAuth] : [clientAuth, serverAuth],
      ),
      await x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey),
      ...(hosts.length === 0
        ? []
        : [
            new x509.SubjectAlternativeNameExtension(
              hosts.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value })),
            ),
          ]),
    ],
  });
  return { certificate: certificate.toString('pem'), key: exportKey(keys) };
}
