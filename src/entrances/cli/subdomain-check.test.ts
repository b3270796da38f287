import { expect, test } from 'vitest';
import { requires } from '../../../test/support/requires.ts';
import { startTlsFront } from '../../../test/support/tls-front.ts';
import { checkSubdomainSetup } from './subdomain-check.ts';

const canMakeCertificates = requires('openssl');

test.skipIf(!canMakeCertificates).each([
  [['hub.localhost'], 'is for hub.localhost: it must also be for *.hub.localhost'],
  [['hub.localhost', 'www.hub.localhost'], 'is for hub.localhost, www.hub.localhost'],
  // A wildcard is for one level (RFC 6125 §6.4.3).
  [['*.localhost'], 'is for *.localhost: it must also be for *.hub.localhost'],
])('a certificate for %j lacks the wildcard', async (names, message) => {
  await using front = await startTlsFront(names, 9);
  const subdomainHost = new URL(`https://hub.localhost:${front.port}`);
  expect(await checkSubdomainSetup({ subdomainHost })).toEqual([
    { path: 'Hub.subdomain_host', message: expect.stringContaining(message) },
  ]);
});

test.skipIf(!canMakeCertificates)('a certificate with the wildcard is fine', async () => {
  await using front = await startTlsFront(['hub.localhost', '*.hub.localhost'], 9);
  const subdomainHost = new URL(`https://hub.localhost:${front.port}`);
  expect(await checkSubdomainSetup({ subdomainHost })).toEqual([]);
});

test('a domain without a wildcard record is pointed at', async () => {
  const subdomainHost = new URL('https://hub.example.org');
  const notFound = async () => {
    throw Object.assign(new Error('not found'), { code: 'ENOTFOUND' });
  };
  expect(await checkSubdomainSetup({ subdomainHost }, notFound)).toEqual([
    {
      path: 'Hub.subdomain_host',
      message: 'hub--check.hub.example.org has no address: make a DNS record for *.hub.example.org',
    },
  ]);
});

test.each([
  ['without the setting', undefined],
  ['where nothing listens', new URL('https://hub.localhost:9')],
  ['over plain http', new URL('http://hub.localhost:9')],
])('says nothing %s', async (_, subdomainHost) => {
  expect(await checkSubdomainSetup({ subdomainHost })).toEqual([]);
});

test('says nothing where the resolver does not answer', async () => {
  const subdomainHost = new URL('https://hub.example.org');
  const away = async () => {
    throw Object.assign(new Error('away'), { code: 'EAI_AGAIN' });
  };
  expect(await checkSubdomainSetup({ subdomainHost }, away)).toEqual([]);
});
