import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import type { KeyPair, ServedCertificate } from './certificate-source.ts';
import { createContext } from './secure-context.ts';

/** What is wrong with a certificate or its key, and with which of them. */
export interface CertificateProblem {
  readonly part: keyof KeyPair;
  readonly problem: string;
}

/** No hyphen stands within one: each character is read once. */
const block = /-----BEGIN ([A-Z0-9 ]+)-----[^-]+-----END \1-----/g;

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

/** Reads lists of revoked certificates (RFC 5280 §5), in PEM or one in DER; gives each in PEM. */
export function readRevocationLists(
  body: Buffer,
): readonly string[] | { readonly problem: string } {
  const text = body.toString('latin1');
  const lists = [...text.matchAll(block)].flatMap(([pem, label]) =>
    label === 'X509 CRL' ? pem : [],
  );
  if (lists.length === 0 && body[0] === derSequence) {
    lists.push(`-----BEGIN X509 CRL-----\n${body.toString('base64')}\n-----END X509 CRL-----`);
  }
  if (lists.length === 0) return { problem: 'holds no revocation list in PEM or DER' };
  try {
    createSecureContext({ crl: lists });
    return lists;
  } catch {
    return { problem: 'holds a revocation list that cannot be read' };
  }
}

const derSequence = 0x30;
/** UTCTime and GeneralizedTime of RFC 5280 §5.1.2.6, with their lengths. */
const derTimes = [0x17_0d, 0x18_0f];
const derTimeTags = [0x17, 0x18];
const derInteger = 0x02;

/**
 * The serial numbers in lists in PEM, as hexadecimal digits without zeros before them: each number that a time
 * follows. No time follows another number of a list (RFC 5280 §5.1).
 */
export function revokedSerials(lists: readonly string[]): ReadonlySet<string> {
  const serials = new Set<string>();
  for (const list of lists) {
    const der = Buffer.from(list.replaceAll(/-----.*-----/g, ''), 'base64');
    for (let at = der.indexOf(derInteger); at !== -1; at = der.indexOf(derInteger, at + 1)) {
      const end = at + 2 + (der[at + 1] ?? 0);
      if (end + 2 > der.length || !derTimes.includes(der.readUInt16BE(end))) continue;
      serials.add(plainSerial(der.toString('hex', at + 2, end)));
    }
  }
  return serials;
}

/**
 * When a newer list than this one in PEM is due (RFC 5280 §5.1.2.5), in milliseconds since 1970; undefined where it does
 * not say. OpenSSL takes it for no list from then on.
 */
export function endOfList(list: string): number | undefined {
  const der = Buffer.from(list.replaceAll(/-----.*-----/g, ''), 'base64');
  const read = (at: number) => {
    const [tag, first = 0] = [der[at], der[at + 1]];
    const lengthBytes = first < 0x80 ? 0 : first - 0x80;
    const start = at + 2 + lengthBytes;
    const length = lengthBytes === 0 ? first : der.readUIntBE(at + 2, lengthBytes);
    return { tag, start, end: start + length };
  };
  const isTime = (tag: number | undefined) => derTimeTags.some((each) => each === tag);
  // Behind version, algorithm and issuer stand the time of the list and that of the next one.
  let part = read(read(read(0).start).start);
  while (!isTime(part.tag)) {
    if (part.end >= der.length) return undefined;
    part = read(part.end);
  }
  const next = read(part.end);
  if (!isTime(next.tag)) return undefined;
  const text = der.toString('latin1', next.start, next.end);
  const [year = '', ...rest] = text.match(next.tag === 0x17 ? /\d\d/g : /^\d{4}|\d\d/g) ?? [];
  const century = year.length === 4 ? '' : Number(year) < 50 ? '20' : '19';
  const [month, day, hour, minute, second] = rest;
  return Date.parse(`${century}${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

/** A serial number as `revokedSerials` has it. */
export function plainSerial(hexadecimal: string): string {
  return hexadecimal.toLowerCase().replace(/^0+/, '');
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
