import { describe, expect, test } from 'vitest';
import { requires } from '../../../../test/support/requires.ts';
import { selfSigned } from '../../../../test/support/tls-front.ts';
import { createCertificateChoice } from './certificate-choice.ts';
import { createCertificateSources, type ServedCertificate } from './certificate-source.ts';
import { readCertificate } from './read-certificate.ts';

function made(...names: string[]): ServedCertificate {
  const { key, cert } = selfSigned(names);
  const read = readCertificate({ certificate: `${cert}`, key: `${key}`, origin: names[0] ?? '' });
  if ('problem' in read) throw new Error(read.problem);
  return read;
}

describe.skipIf(!requires('openssl'))('certificates', () => {
  test('a name gets its own, else its wildcard’s, else the first, of several sources', () => {
    const [hub, wildcard, own] = [made('hub.test'), made('*.hub.test'), made('ada.hub.test')];
    const sources = createCertificateSources();
    const choice = createCertificateChoice(sources);
    expect([choice.first, choice.contextFor('hub.test')]).toEqual([undefined, undefined]);

    let certificates = [hub, wildcard];
    let tell = () => {};
    sources.add({
      certificates: () => certificates,
      onChange(listener) {
        tell = listener;
      },
    });
    const ofWildcard = choice.contextFor('bob.hub.test');
    expect(choice.contextFor('ADA.hub.test.')).toBe(ofWildcard);
    expect(choice.contextFor('hub.test')).not.toBe(ofWildcard);
    expect(choice.contextFor('nobody.test')).toBe(choice.contextFor('hub.test'));
    expect(choice.contextFor('a.b.hub.test')).toBe(choice.contextFor('hub.test'));
    const covered = ['hub.test', 'bob.hub.test', 'a.b.hub.test', 'test', ''].filter(choice.covers);
    expect(covered).toEqual(['hub.test', 'bob.hub.test']);

    certificates = [hub, wildcard, own];
    tell();
    expect(choice.contextFor('ada.hub.test')).not.toBe(ofWildcard);
    expect(choice.contextFor('bob.hub.test')).toBe(ofWildcard);
  });

  test('says what is wrong with a pair', () => {
    const [one, other] = [made('hub.test'), made('other.test')];
    const chain = (...of: ServedCertificate[]) => of.map(({ certificate }) => certificate).join('');
    const problemOf = (certificate: string, key: string) => {
      const read = readCertificate({ certificate, key, origin: '' });
      return 'problem' in read ? `${read.part} ${read.problem}` : undefined;
    };
    expect(problemOf(one.certificate, one.key)).toBeUndefined();
    expect(problemOf(one.key + one.certificate, one.key + one.certificate)).toBeUndefined();
    expect(problemOf(one.certificate, other.key)).toBe('key is not the key of the certificate');
    expect(problemOf(chain(other, one), one.key)).toMatch(/own certificate behind/);
    expect(problemOf(chain(one, other), one.key)).toMatch(/number 2 did not issue number 1/);
    expect(problemOf('', one.key)).toMatch(/holds no certificate/);
    expect(problemOf(one.certificate.replace(/M[A-Z]/, 'AA'), one.key)).toMatch(/cannot be read/);
    expect(problemOf(one.certificate, one.certificate)).toMatch(/holds no private key/);
    const encrypted = one.key.replaceAll('PRIVATE', 'ENCRYPTED PRIVATE');
    expect(problemOf(one.certificate, encrypted)).toMatch(/is encrypted/);
  });
});
