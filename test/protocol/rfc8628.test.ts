import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import * as openidClient from 'openid-client';
import { beforeEach, describe, expect, test } from 'vitest';
import { pathOf, requires } from '../support/requires.ts';
import {
  type AuthorizationServerHarness,
  basic,
  errorOf,
  refusalOf,
  startAuthorizationServer,
  wiki,
} from './harness.ts';

const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
const tv = {
  ...wiki,
  name: 'tv',
  secret: 'tv-secret-0123456789',
  isPublic: true,
  grants: ['device', 'refresh'],
} as const;
const radio = {
  ...wiki,
  name: 'radio',
  secret: 'radio-secret-0123456789',
  grants: ['device'],
  allowedScopes: ['read:users!user'],
} as const;
const car = {
  ...wiki,
  name: 'car',
  secret: 'car-secret-0123456789',
  grants: ['device', 'refresh'],
  mayOutliveLogin: true,
} as const;
const client_id = 'service-tv';

interface Codes {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly verification_uri_complete: string;
  readonly expires_in: number;
  readonly interval: number;
}

let hub: AuthorizationServerHarness;
let alice: Awaited<ReturnType<AuthorizationServerHarness['login']>>;
beforeEach(async () => {
  hub = await startAuthorizationServer({ services: [tv, radio, car, wiki] });
  alice = await hub.login('alice');
  return () => hub[Symbol.asyncDispose]();
});

const begin = async (form: Record<string, string> = { client_id }): Promise<Codes> =>
  (await (await hub.post('device_authorization', form)).json()) as Codes;
const poll = (device_code: string, form: Record<string, string> = { client_id }) =>
  hub.post('token', { grant_type, device_code, ...form });
const allow = ({ user_code }: Codes) => hub.deviceVerification.decide(user_code, alice, []);
const deny = ({ user_code }: Codes) => hub.deviceVerification.decide(user_code, alice, undefined);
const statusWith = async (token: string) => {
  const headers = { Authorization: `Bearer ${token}` };
  return (await hub.request(hub.userResource, { headers })).status;
};

test('§3.1–3.5 openid-client logs a device in', async () => {
  const configuration = await openidClient.discovery(
    new URL(hub.issuer),
    client_id,
    undefined,
    openidClient.None(),
    { execute: [openidClient.allowInsecureRequests] },
  );
  const codes = await openidClient.initiateDeviceAuthorization(configuration, { scope: 'openid' });
  expect(codes).toMatchObject({ expires_in: 600, interval: 5 });
  await allow(codes as Codes);
  const tokens = await openidClient.pollDeviceAuthorizationGrant(configuration, {
    ...codes,
    interval: 0,
  });
  expect(tokens.claims()?.sub).toBe(alice.user.id);
  expect(await statusWith(tokens.access_token)).toBe(200);
  const next = await openidClient.refreshTokenGrant(configuration, tokens.refresh_token ?? '');
  expect(await statusWith(next.access_token)).toBe(200);
});

test.skipIf(!requires('oidc-agent'))(
  '§3.1–3.5 and RFC 6749 §6 oidc-agent logs a device in, and refreshes its tokens',
  async () => {
    await using parts = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), 'oidc-agent-'));
    parts.defer(() => rmSync(folder, { recursive: true }));
    const bin = dirname(pathOf('oidc-agent'));
    const env: NodeJS.ProcessEnv = { HOME: folder, OIDC_CONFIG_DIR: folder };
    const run = async (program: string, ...args: string[]) =>
      (await promisify(execFile)(join(bin, program), args, { env })).stdout.trim();
    const started = await run('oidc-agent');
    env['OIDC_SOCK'] = /OIDC_SOCK=([^;]+)/.exec(started)?.[1];
    parts.defer(() => void process.kill(Number(/OIDCD_PID=(\d+)/.exec(started)?.[1])));
    const answers = ['--pw-cmd=echo x', '--prompt=none', '--confirm-default', '--no-url-call'];
    const client = [
      '--client-id=service-car',
      `--client-secret=${car.secret}`,
      '--scope=openid offline_access',
    ];
    const urls = [`--issuer=${hub.issuer}`, '--redirect-uri=http://localhost:4242'];
    const login = spawn(
      join(bin, 'oidc-gen'),
      ['--manual', '--flow=device', ...urls, ...client, ...answers, 'car'],
      { env, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    const ended = once(login, 'exit');
    for await (const line of createInterface({ input: login.stderr })) {
      const user_code = /the code: (\S+)/.exec(line)?.[1];
      if (user_code !== undefined) await hub.deviceVerification.decide(user_code, alice, []);
    }
    expect(await ended).toEqual([0, null]);
    const first = await run('oidc-token', 'car');
    expect(await statusWith(first)).toBe(200);
    hub.skipSeconds(3601);
    expect(await statusWith(first)).toBe(401);
    expect(await statusWith(await run('oidc-token', '--force-new', 'car'))).toBe(200);
  },
);

describe('§3.1 and §3.2 the device authorization endpoint', () => {
  test('"a newline- and vowel-free" code that people can type, and a page for it', async () => {
    const codes = await begin();
    expect(codes.user_code).toMatch(/^[B-DF-HJ-NP-TV-XZ]{4}-[B-DF-HJ-NP-TV-XZ]{4}$/);
    expect(codes.verification_uri).toBe(`${hub.issuer}/hub/device`);
    expect(codes.verification_uri_complete).toBe(
      `${codes.verification_uri}?user_code=${codes.user_code}`,
    );
    expect(codes.device_code.length).toBeGreaterThan(43);
  });

  test('"the client authentication requirements of RFC 6749 §3.2.1 apply"', async () => {
    const ask = (form: Record<string, string>, headers = {}) =>
      hub.post('device_authorization', form, headers);
    expect(await refusalOf(await ask({ client_id: 'service-radio' }))).toEqual([
      401,
      'invalid_client',
    ]);
    expect((await ask({}, basic('service-radio', radio.secret))).status).toBe(200);
    expect(await refusalOf(await ask({ client_id: 'unknown' }))).toEqual([401, 'invalid_client']);
  });

  test('clients that are not configured for it, and scopes beyond theirs, are refused', async () => {
    const asWiki = basic('service-wiki', wiki.secret);
    expect(await refusalOf(await hub.post('device_authorization', {}, asWiki))).toEqual([
      400,
      'unauthorized_client',
    ]);
    const asked = { client_id, scope: 'admin:users' };
    expect(await refusalOf(await hub.post('device_authorization', asked))).toEqual([
      400,
      'invalid_scope',
    ]);
  });

  test('§5.1 one network begins so many and no more, until they have ended', async () => {
    for (let count = 0; count < 5; count += 1) await begin();
    const refused = await hub.post('device_authorization', { client_id });
    expect(refused.status).toBe(429);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  });
});

describe('§3.3 the user', () => {
  test('§6.1 types the code in any case, with or without marks, and sees who asks', async () => {
    const { user_code } = await begin();
    const typed = ` ${user_code.toLowerCase().replace('-', ' ')}.`;
    expect(await hub.deviceVerification.find(typed, alice.user)).toMatchObject({
      userCode: user_code,
      address: '127.0.0.1',
      consent: { clientName: 'tv', redirectHost: '', leavesHub: false },
    });
  });

  test('§5.1 guesses at codes are counted, and end for a while', async () => {
    const guess = () => hub.deviceVerification.find('BBBB-BBBB', alice.user);
    for (let count = 0; count < 3; count += 1) expect(await guess()).toBeUndefined();
    await expect(guess()).rejects.toMatchObject({ code: 'too_many_requests' });
    // Others are not held up by it.
    const bob = await hub.login('bob');
    expect(await hub.deviceVerification.find('BBBB-BBBB', bob.user)).toBeUndefined();
  });

  test('decides once, and grants no more than was shown', async () => {
    const codes = await begin({ client_id });
    await allow(codes);
    await expect(deny(codes)).rejects.toMatchObject({ code: 'bad_request' });
    const asked = { scope: 'read:users!user' };
    const asRadio = basic('service-radio', radio.secret);
    const more = (await (await hub.post('device_authorization', asked, asRadio)).json()) as Codes;
    await hub.deviceVerification.decide(more.user_code, alice, ['read:users:name!user']);
    const form = { grant_type, device_code: more.device_code };
    const { scope } = (await (await hub.post('token', form, asRadio)).json()) as { scope: string };
    expect(scope.split(' ')).not.toContain('read:users!user');
  });
});

describe('§3.4 and §3.5 the token endpoint', () => {
  test('"authorization_pending" until the user has decided', async () => {
    const { device_code } = await begin();
    expect(await refusalOf(await poll(device_code))).toEqual([400, 'authorization_pending']);
  });

  test('"slow_down": the interval is increased by 5 seconds for this and all subsequent requests', async () => {
    const { device_code, interval } = await begin();
    const answers: string[] = [];
    for (const seconds of [0, interval - 1, interval, interval + 5, 0]) {
      hub.skipSeconds(seconds);
      answers.push(await errorOf(await poll(device_code)));
    }
    expect(answers).toEqual([
      'authorization_pending',
      'slow_down',
      'slow_down',
      'slow_down',
      'slow_down',
    ]);
    hub.skipSeconds(interval + 20);
    expect(await errorOf(await poll(device_code))).toBe('authorization_pending');
  });

  test('"access_denied" once the user has denied it', async () => {
    const codes = await begin();
    await deny(codes);
    expect(await refusalOf(await poll(codes.device_code))).toEqual([400, 'access_denied']);
  });

  test('"expired_token", which no user can allow any more', async () => {
    const codes = await begin();
    hub.skipSeconds(601);
    expect(await refusalOf(await poll(codes.device_code))).toEqual([400, 'expired_token']);
    await expect(allow(codes)).rejects.toMatchObject({ code: 'bad_request' });
  });

  test('a code used twice ends what it gave, as an authorization code does', async () => {
    const codes = await begin();
    await allow(codes);
    const { access_token } = (await (await poll(codes.device_code)).json()) as {
      access_token: string;
    };
    expect(await refusalOf(await poll(codes.device_code))).toEqual([400, 'invalid_grant']);
    expect(await statusWith(access_token)).toBe(401);
  });

  test('codes of another client, and the code of the page in place of the device’s, give nothing', async () => {
    const codes = await begin();
    await allow(codes);
    const asRadio = basic('service-radio', radio.secret);
    const form = { grant_type, device_code: codes.device_code };
    expect(await refusalOf(await hub.post('token', form, asRadio))).toEqual([400, 'invalid_grant']);
    for (const guess of [codes.user_code, `${codes.user_code}.guessed`, 'guessed', '.'])
      expect(await refusalOf(await poll(guess))).toEqual([400, 'invalid_grant']);
    expect((await poll(codes.device_code)).status).toBe(200);
  });

  test('what it gave ends with the login in which it was allowed', async () => {
    const codes = await begin();
    await allow(codes);
    await hub.database.kysely.deleteFrom('login_sessions').execute();
    expect(await refusalOf(await poll(codes.device_code))).toEqual([400, 'invalid_grant']);
  });

  test('§5.5 the device_code and client_id are parameters that must come once', async () => {
    expect(await refusalOf(await hub.post('token', { grant_type, client_id }))).toEqual([
      400,
      'invalid_request',
    ]);
    const twice = [
      ['grant_type', grant_type],
      ['client_id', client_id],
      ['device_code', 'a'],
      ['device_code', 'b'],
    ] as [string, string][];
    expect(await refusalOf(await hub.post('token', twice))).toEqual([400, 'invalid_request']);
  });
});

test('§4 both metadata documents name the endpoint and the grant type', async () => {
  for (const name of ['oauth-authorization-server', 'openid-configuration']) {
    const answer = await hub.request(`${hub.issuer}/.well-known/${name}`);
    expect(await answer.json()).toMatchObject({
      device_authorization_endpoint: hub.endpoint('device_authorization'),
      grant_types_supported: expect.arrayContaining([grant_type]),
    });
  }
});
