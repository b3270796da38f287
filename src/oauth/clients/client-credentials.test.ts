import { expect, test } from 'vitest';
import { readClientCredentials } from './client-credentials.ts';

const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const none = new URLSearchParams();
const inBody = new URLSearchParams({ client_id: 'service-a', client_secret: 's' });

test.each([
  ['HTTP Basic', basic('service-a:s'), none],
  ['HTTP Basic in another case', basic('service-a:s').replace('Basic', 'bAsIc'), none],
  [
    'HTTP Basic beside its own client_id',
    basic('service-a:s'),
    new URLSearchParams({ client_id: 'service-a' }),
  ],
  ['the body', undefined, inBody],
  ['the body beside another scheme', 'Bearer x', inBody],
])('reads %s', (_, authorization, form) => {
  expect(readClientCredentials(authorization, form)).toEqual({
    clientId: 'service-a',
    clientSecret: 's',
  });
});

test('decodes the form-encoding of id and secret', () => {
  expect(readClientCredentials(basic('a%3Ab+c:p%2Bq:r%25'), none)).toEqual({
    clientId: 'a:b c',
    clientSecret: 'p+q:r%',
  });
});

test.each([
  ['no credentials', undefined, none],
  ['an id alone', undefined, new URLSearchParams({ client_id: 'service-a' })],
  [
    'an empty secret',
    undefined,
    new URLSearchParams({ client_id: 'service-a', client_secret: '' }),
  ],
  ['a scheme that only begins alike', 'Basically x', none],
])('finds none in %s', (_, authorization, form) => {
  expect(readClientCredentials(authorization, form)).toBeUndefined();
});

test('refuses two ways of authentication at once', () => {
  expect(() => readClientCredentials(basic('service-a:s'), inBody)).toThrow('two ways at once');
});

test('refuses two different ids', () => {
  const form = new URLSearchParams({ client_id: 'service-b' });
  expect(() => readClientCredentials(basic('service-a:s'), form)).toThrow('two different ways');
});

test.each(['Basic', 'Basic ', 'Basic !!!', basic('no-colon'), basic('a:%zz')])(
  'refuses the malformed header %s',
  (authorization) => {
    expect(() => readClientCredentials(authorization, none)).toThrow(
      expect.objectContaining({ error: 'invalid_client' }),
    );
  },
);
