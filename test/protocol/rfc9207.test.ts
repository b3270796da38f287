import { beforeEach, expect, test } from 'vitest';
import {
  type AuthorizationServerHarness,
  responseParameters,
  startAuthorizationServer,
} from './harness.ts';

const request = { response_type: 'code', client_id: 'service-wiki', state: 'xyz' };
let hub: AuthorizationServerHarness;
beforeEach(async () => {
  hub = await startAuthorizationServer();
  return () => hub[Symbol.asyncDispose]();
});

async function publishedIssuer(): Promise<string> {
  const response = await hub.request(`${hub.origin}/.well-known/oauth-authorization-server`);
  return ((await response.json()) as { issuer: string }).issuer;
}

test('§2 a successful authorization response MUST include iss, equal to the issuer of the metadata', async () => {
  const response = await hub.decide(request, await hub.login('alice'));
  expect(responseParameters(response).has('code')).toBe(true);
  expect(responseParameters(response).getAll('iss')).toEqual([await publishedIssuer()]);
});

test('§2 an error response MUST include iss as well', async () => {
  const alice = await hub.login('alice');
  for (const response of [
    await hub.decide(request, alice, { decision: 'deny' }),
    await hub.authorize({ ...request, response_type: 'token' }, alice),
    await hub.authorize({ ...request, scope: 'unknown' }, alice),
  ]) {
    expect(responseParameters(response).has('error')).toBe(true);
    expect(responseParameters(response).getAll('iss')).toEqual([await publishedIssuer()]);
  }
});

test('§2 the issuer is the same below a base path', async () => {
  await using team = await startAuthorizationServer({ basePath: '/team/' });
  const response = await team.decide(request, await team.login('alice'));
  expect(responseParameters(response).get('iss')).toBe(`${team.origin}/team`);
});

test('§3 the metadata says that iss is sent', async () => {
  const response = await hub.request(`${hub.origin}/.well-known/oauth-authorization-server`);
  expect(await response.json()).toMatchObject({
    authorization_response_iss_parameter_supported: true,
  });
});
