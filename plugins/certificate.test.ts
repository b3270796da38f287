import { webcrypto } from 'node:crypto';
import 'reflect-metadata';
import {
  type JsonGeneralName,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { expect, test } from 'vitest';
import { authenticatorContract, createTestHost } from '../test/contract/testing.ts';
import plugin from './certificate.ts';

test.for(authenticatorContract({ plugin, options: {} }))('keeps the contract: $name', ({ run }) =>
  run(),
);

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** DER in base64 of a certificate with this subject and these other names. */
async function certificateOf(
  name: Record<string, string[]>[],
  alternatives: JsonGeneralName[] = [],
): Promise<string> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const made = await X509CertificateGenerator.createSelfSigned({
    name,
    keys,
    signingAlgorithm: algorithm,
    extensions:
      alternatives.length === 0 ? [] : [new SubjectAlternativeNameExtension(alternatives)],
  });
  return made.toString('base64');
}

async function identify(
  clientCertificate: string | undefined,
  options: object = {},
  headers: Readonly<Record<string, string>> = {},
) {
  const host = await createTestHost();
  const authenticator = await plugin.create(plugin.optionsSchema.parse(options), host);
  return authenticator.identify({
    address: '192.0.2.1',
    peerAddress: '192.0.2.9',
    isTrustedProxy: true,
    userAgent: '',
    headers,
    clientCertificate,
    signal: AbortSignal.timeout(300_000),
  });
}

test('names the user by the field that is set, with groups', async () => {
  const shown = await certificateOf(
    [
      { CN: ['Ada Lovelace'] },
      { '0.9.2342.19200300.100.1.1': ['ada'] },
      { OU: ['ops'] },
      { OU: ['staff'] },
    ],
    [
      { type: 'email', value: 'ada@example.org' },
      { type: 'dns', value: 'ada.example.org' },
    ],
  );
  const nameBy = async (user_field: string) => await identify(shown, { user_field });
  expect(await nameBy('CN')).toEqual({ outcome: 'authenticated', user: { name: 'Ada Lovelace' } });
  expect(await nameBy('UID')).toMatchObject({ user: { name: 'ada' } });
  expect(await nameBy('san_email')).toMatchObject({ user: { name: 'ada@example.org' } });
  expect(await nameBy('san_dns')).toMatchObject({ user: { name: 'ada.example.org' } });
  const groups = { groups_field: 'OU', allowed_groups: ['others'], admin_groups: ['ops'] };
  expect(await identify(shown, groups)).toMatchObject({
    user: { groups: ['ops', 'staff'], allowed: true, admin: true },
  });
  expect(await identify(shown, { ...groups, admin_groups: ['root'] })).toMatchObject({
    user: { allowed: false, admin: false },
  });
});

test('believes no header, and no field that is not there, or there twice, or made to look like two', async () => {
  const shown = await certificateOf([{ CN: ['ada'] }]);
  const headers = { 'client-cert': `:${shown}:`, 'x-forwarded-user': 'ada' };
  expect(await identify(undefined, {}, headers)).toEqual({
    outcome: 'refused',
    reason: 'credentials',
  });
  const odd: [object, string][] = [
    [{ user_field: 'UID' }, shown],
    [{ user_field: 'san_email' }, shown],
    [{}, await certificateOf([{ CN: ['ada'] }, { CN: ['root'] }])],
    [
      { user_field: 'san_email' },
      await certificateOf(
        [{ CN: ['ada'] }],
        [{ type: 'email', value: 'x, email:root@example.org' }],
      ),
    ],
    [
      { user_field: 'san_dns' },
      await certificateOf([{ CN: ['ada'] }], [{ type: 'email', value: 'x, DNS:root' }]),
    ],
  ];
  for (const [options, certificate] of odd) {
    expect(await identify(certificate, options)).toMatchObject({ reason: 'invalid_response' });
  }
  const line = await certificateOf([{ CN: ['ada\nCN=root'] }]);
  expect(await identify(line)).toMatchObject({ user: { name: 'ada\nCN=root' } });
});

test('needs a hub that asks for certificates, and a field for groups', async () => {
  const host = await createTestHost();
  const problems = (options: object, asksForCertificates: boolean) =>
    plugin
      .findProblems?.(plugin.optionsSchema.parse(options), { ...host, asksForCertificates })
      ?.map(({ option }) => option);
  expect(problems({}, true)).toEqual([]);
  expect(problems({}, false)).toEqual(['user_field']);
  expect(problems({ admin_groups: ['ops'] }, true)).toEqual(['admin_groups']);
});
