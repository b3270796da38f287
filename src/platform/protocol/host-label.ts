import { createHash } from 'node:crypto';

/**
 * The DNS label of a host that a user's servers or a service have to themselves, below
 * `Hub.subdomain_host`, and the one place that decides it. A label is one level, so that one wildcard
 * certificate serves all of them.
 *
 * A name that is a plain label stays as it is; a service's gets `--service` at its end. Every other
 * name becomes `u-<readable part>--<hash>`, `s-<readable part>--<hash>--service` for a service. No plain
 * name of a user holds `--`, and the hash has 130 bits, so that no two names ever share a label.
 */

const serviceEnding = '--service';
/** RFC 1035 §2.3.1 */
const maxLabelLength = 63;
const maxStubLength = 20;
/** Of base 32: 130 bits, more than anyone can make collide with names they choose. */
const hashLength = 26;

/** Lower case, since host names know no other, and without `--`: that is for labels made here. */
const plainName = /^[a-z0-9]+(?:-[a-z0-9]+)*$/;

/** Whether a name can be a label, or the beginning of one, as it is. */
export function isPlainName(name: string): boolean {
  return plainName.test(name);
}

/**
 * Names that people, mail programs, browsers and certificate authorities take for the operator's own
 * host (RFC 2142, RFC 8461, WPAD), so that no user may have them.
 */
const operatorLabels = new Set([
  'account',
  'accounts',
  'admin',
  'api',
  'app',
  'assets',
  'auth',
  'autoconfig',
  'autodiscover',
  'broadcasthost',
  'cdn',
  'dns',
  'docs',
  'ftp',
  'help',
  'hub',
  'id',
  'imap',
  'isatap',
  'localdomain',
  'localhost',
  'login',
  'mail',
  'mta-sts',
  'ns',
  'ns1',
  'ns2',
  'openpgpkey',
  'pop',
  'pop3',
  'root',
  'secure',
  'security',
  'smtp',
  'sso',
  'static',
  'status',
  'support',
  'webmail',
  'wpad',
  'www',
]);

/**
 * The label of the host of a user's servers. `taken` is the label of the hub's own host, where that is
 * one below the same domain.
 */
export function userHostLabel(userName: string, taken?: string): string {
  const isPlain =
    isPlainName(userName) &&
    userName.length <= maxLabelLength &&
    !operatorLabels.has(userName) &&
    userName !== taken;
  return isPlain ? userName : `u-${stubOf(userName)}--${readableHash(userName)}`;
}

/** The label of the host of a service. */
export function serviceHostLabel(serviceName: string): string {
  const isPlain =
    isPlainName(serviceName) &&
    serviceName.length + serviceEnding.length <= maxLabelLength &&
    // `xn--service` would be read as punycode (RFC 5890 §2.3.1), as would others be one day.
    serviceName.length !== 2;
  const label = isPlain ? serviceName : `s-${stubOf(serviceName)}--${readableHash(serviceName)}`;
  return label + serviceEnding;
}

/** Enough of a name to know it by; never empty, and without two hyphens in a row. */
export function stubOf(name: string): string {
  const stub = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, maxStubLength)
    .replaceAll(/^-+|-+$/g, '');
  return stub === '' ? 'x' : stub;
}

const base32 = 'abcdefghijklmnopqrstuvwxyz234567';

/** 130 bits of a hash, in small letters and digits. */
export function readableHash(name: string): string {
  const digest = createHash('sha256').update(name).digest();
  let text = '';
  for (let bit = 0; text.length < hashLength; bit += 5) {
    const pair = ((digest[bit >> 3] ?? 0) << 8) | (digest[(bit >> 3) + 1] ?? 0);
    text += base32[(pair >> (11 - (bit & 7))) & 31];
  }
  return text;
}
