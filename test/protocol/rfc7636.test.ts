import { beforeEach, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  pkcePair,
  refusalOf,
  responseParameters,
  startAuthorizationServer,
} from './harness.ts';

const request = { response_type: 'code', client_id: 'service-wiki' };
let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer();
  return () => hub[Symbol.asyncDispose]();
});

async function codeFor(code_challenge: string): Promise<string> {
  const alice = await hub.login('alice');
  return await hub.obtainCode(alice, { code_challenge, code_challenge_method: 'S256' });
}

test('§4.2 S256 is mandatory to implement on the server', async () => {
  const { verifier, challenge } = pkcePair();
  const response = await hub.exchange(await codeFor(challenge), { code_verifier: verifier });
  expect(response.status).toBe(200);
});

test('§4.3 a challenge without a method is plain, which this server does not support', async () => {
  const response = await hub.authorize({ ...request, code_challenge: pkcePair().challenge });
  expect(responseParameters(response).get('error')).toBe('invalid_request');
});

test.each(['plain', 's256', 'S512', 'none'])(
  '§4.4.1 invalid_request for the transformation %s',
  async (code_challenge_method) => {
    const code_challenge = pkcePair().challenge;
    const response = await hub.authorize({ ...request, code_challenge, code_challenge_method });
    expect(responseParameters(response).get('error')).toBe('invalid_request');
    expect(responseParameters(response).get('error_description')).toContain('S256');
  },
);

test.each(['', 'short', 'a'.repeat(44), `${'a'.repeat(42)}=`])(
  '§4.2 invalid_request for what cannot be a challenge: %j',
  async (code_challenge) => {
    const parameters = { ...request, code_challenge, code_challenge_method: 'S256' };
    const response = await hub.authorize(parameters);
    expect(responseParameters(response).get('error')).toBe('invalid_request');
  },
);

test('§4.4 the challenge is associated with the code and not disclosed', async () => {
  const [one, other] = [pkcePair(), pkcePair()];
  const code = await codeFor(one.challenge);
  expect(code).not.toContain(one.challenge);
  expect(await refusalOf(await hub.exchange(code, { code_verifier: other.verifier }))).toEqual([
    400,
    'invalid_grant',
  ]);
});

test('§4.6 refuses a code_verifier that does not match the code_challenge', async () => {
  const { verifier, challenge } = pkcePair();
  for (const wrong of [`${verifier}x`, challenge, verifier.slice(0, 43)]) {
    const response = await hub.exchange(await codeFor(challenge), { code_verifier: wrong });
    expect(await refusalOf(response)).toEqual([400, 'invalid_grant']);
  }
});

test('§4.6 refuses a token request without a code_verifier when a code_challenge was sent', async () => {
  const code = await codeFor(pkcePair().challenge);
  expect(await refusalOf(await hub.exchange(code))).toEqual([400, 'invalid_grant']);
});

test('§4.6 a failed verification leaves no second guess', async () => {
  const { verifier, challenge } = pkcePair();
  const code = await codeFor(challenge);
  await hub.exchange(code, { code_verifier: pkcePair().verifier });
  expect(await refusalOf(await hub.exchange(code, { code_verifier: verifier }))).toEqual([
    400,
    'invalid_grant',
  ]);
});

test('§5 clients without PKCE are still accepted', async () => {
  const code = await hub.obtainCode(await hub.login('alice'));
  expect((await hub.exchange(code)).status).toBe(200);
});

test('§7.2 the method is not downgraded: plain never verifies an S256 challenge', async () => {
  const { challenge } = pkcePair();
  const response = await hub.exchange(await codeFor(challenge), {
    code_verifier: challenge,
    code_challenge_method: 'plain',
  });
  expect(await refusalOf(response)).toEqual([400, 'invalid_grant']);
});
