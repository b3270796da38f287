import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import type { KeyPair, ServedCertificate } from './certificate-source.ts';
import { createContext } from './secure-context.ts';

/** What is wrong with a certificate or its key, and with which of them. */
export interface CertificateProblem {
  readonly part: keyof KeyPair;
  readonly problem: string;
}

const block = /-----BEGIN ([A-Z0-9 ]+)-----[\s\S]+?-----END \1-----/g;

/**
 * Reads a chain and its key: the certificate of the key first, then each that issued the one before (RFC 8446 §4.4.2).
 * When it ends is for others to judge.
 */
export function readCertificate(
  pair: KeyPair & Pick<ServedCertificate, 'origin'>,
): ServedCertificate | CertificateProblem {
  const chain = readChain(pair.certificate);
  if (typeof chain === 'string') return { part: 'certificate', problem: chain };
  const key = readKey(pair.key);
  if (typeof key === 'string') return { part: 'key', problem: key };
  const [leaf, ...issuers] = chain;
  if (leaf === undefined) return { part: 'certificate', problem: 'holds no certificate in PEM' };
  if (!leaf.checkPrivateKey(key)) {
    return issuers.some((issuer) => issuer.checkPrivateKey(key))
      ? {
          part: 'certificate',
          problem: 'has its own certificate behind that of an authority; put it first',
        }
      : { part: 'key', problem: 'is not the key of the certificate' };
  }
  for (const [index, issuer] of issuers.entries()) {
    if (chain[index]?.checkIssued(issuer) === true) continue;
    const problem = `has certificates out of order: number ${index + 2} did not issue number ${index + 1}`;
    return { part: 'certificate', problem };
  }
  const names = namesOf(leaf);
  if (names.length === 0 && !/\bIP Address:/.test(leaf.subjectAltName ?? '')) {
    return {
      part: 'certificate',
      problem: 'names no host in its subjectAltName, where browsers look',
    };
  }
  try {
    createContext(pair);
  } catch (error) {
    return { part: 'certificate', problem: `cannot be used: ${(error as Error).message}` };
  }
  return { ...pair, names, notAfter: leaf.validToDate };
}

/** Reads the certificates of authorities, in whatever order; gives them as they are. */
export function readAuthorities(text: string): string | { readonly problem: string } {
  const authorities = readChain(text);
  if (typeof authorities === 'string') return { problem: authorities };
  if (authorities.length === 0) return { problem: 'holds no certificate in PEM' };
  const other = authorities.find(({ ca }) => !ca);
  if (other === undefined) return text;
  return {
    problem: `holds a certificate of no authority: ${other.subject.replaceAll('\n', ', ')}`,
  };
}

function readChain(text: string): X509Certificate[] | string {
  try {
    const blocks = [...text.matchAll(block)].filter(([, label]) => label === 'CERTIFICATE');
    return blocks.map(([pem]) => new X509Certificate(pem));
  } catch {
    return 'holds a certificate that cannot be read';
  }
}

function readKey(text: string): KeyObject | string {
  if (/^-----BEGIN ENCRYPTED|^Proc-Type: .*ENCRYPTED/m.test(text)) {
    return 'is encrypted, and nobody is there to type its password; store it without one';
  }
  try {
    return createPrivateKey(text);
  } catch {
    return 'holds no private key in PEM';
  }
}

function namesOf({ subjectAltName = '' }: X509Certificate): string[] {
  return subjectAltName
    .split(', ')
    .flatMap((entry) => (entry.startsWith('DNS:') ? [entry.slice(4).toLowerCase()] : []));
}
