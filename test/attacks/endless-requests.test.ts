import { expect, test } from 'vitest';
import { hashSecret } from '../../src/platform/crypto/hash.ts';
import {
  type AuthorizationServerHarness,
  basic,
  forum,
  refusalOf,
  startAuthorizationServer,
  wiki,
} from '../protocol/harness.ts';

const asWiki = basic('service-wiki', wiki.secret);

async function isGood(hub: AuthorizationServerHarness, token: string): Promise<boolean> {
  const headers = { Authorization: `Bearer ${token}` };
  return (await hub.request(hub.userResource, { headers })).status === 200;
}

/** Makes so many tokens, the first three a second apart; tells which of those and of the last are good in the end. */
async function goodOf(
  hub: AuthorizationServerHarness,
  count: number,
  make: () => Promise<string>,
): Promise<readonly boolean[]> {
  const first: string[] = [];
  for (let made = 0; made < 3; made += 1) {
    first.push(await make());
    hub.skipSeconds(1);
  }
  let last = '';
  for (let made = 3; made < count; made += 1) last = await make();
  return Promise.all([...first, last].map((token) => isGood(hub, token)));
}

const tokenOf = async (answer: Response) =>
  ((await answer.json()) as { access_token: string }).access_token;

test('a client that exchanges one token without end fills no table: its oldest ones end', async () => {
  const agent = {
    ...wiki,
    grants: ['token_exchange'],
    allowedScopes: ['read:users!user'],
  } as const;
  await using hub = await startAuthorizationServer({ services: [agent, forum] });
  const subject = await hub.obtainToken(await hub.login('alice'), { scope: 'read:users!user' });
  const form = {
    grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
    subject_token: subject,
    subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  };
  const exchanged = async () => tokenOf(await hub.post('token', form, asWiki));
  expect(await goodOf(hub, 202, exchanged)).toEqual([false, false, true, true]);
  expect(await isGood(hub, subject)).toBe(true);
});

test('nor does one that asks for tokens of its own, and those of its users stay', async () => {
  const robot = { ...wiki, grants: ['client_credentials'] } as const;
  await using hub = await startAuthorizationServer({ services: [robot, forum] });
  await hub.roles.apply({
    save: [{ name: 'robots', description: '', scopes: ['read:metrics'], origin: 'api' }],
    assign: [{ roleName: 'robots', subjectKind: 'service', subjectName: 'wiki', origin: 'api' }],
  });
  hub.database.announceChange({ kind: 'rights_changed' });
  const ofUser = await hub.obtainToken(await hub.login('alice'));
  const own = async () =>
    tokenOf(await hub.post('token', { grant_type: 'client_credentials' }, asWiki));
  expect(await goodOf(hub, 202, own)).toEqual([false, false, true, true]);
  expect(await isGood(hub, ofUser)).toBe(true);
});

test('a browser that asks for codes without end has the newest 20 of each client', async () => {
  await using hub = await startAuthorizationServer();
  const browser = await hub.login('alice');
  const ofForum = await hub.obtainCode(browser, { client_id: 'service-forum' });
  const codes: string[] = [];
  for (let made = 0; made < 22; made += 1) {
    codes.push(await hub.obtainCode(browser));
    hub.skipSeconds(1);
  }
  const [first = '', second = '', third = ''] = codes;
  for (const code of [first, second])
    expect(await refusalOf(await hub.exchange(code))).toEqual([400, 'invalid_grant']);
  expect((await hub.exchange(third)).status).toBe(200);
  const form = { grant_type: 'authorization_code', code: ofForum };
  const answer = await hub.post('token', form, basic('service-forum', forum.secret));
  expect(answer.status).toBe(200);
});

test('a client that refreshes without end has to wait until its used tokens are forgotten', async () => {
  const mail = { ...wiki, grants: ['refresh'], mayOutliveLogin: true } as const;
  await using hub = await startAuthorizationServer({ services: [mail, forum] });
  const scope = 'access:services!service=wiki offline_access';
  const code = await hub.obtainCode(await hub.login('alice'), { scope });
  const { refresh_token } = (await (await hub.exchange(code)).json()) as { refresh_token: string };
  const { kysely } = hub.database;
  const { grant_id } = await kysely
    .selectFrom('refresh_tokens')
    .select('grant_id')
    .executeTakeFirstOrThrow();
  const used = Array.from({ length: 10_000 }, (_, index) => ({
    token_hash: hashSecret(`used ${index}`),
    grant_id,
    used_at: hub.database.now(),
  }));
  while (used.length > 0)
    await kysely.insertInto('refresh_tokens').values(used.splice(0, 5_000)).execute();
  const refresh = () => hub.post('token', { grant_type: 'refresh_token', refresh_token }, asWiki);
  expect(await refusalOf(await refresh())).toEqual([400, 'invalid_request']);
  hub.skipSeconds(7 * 24 * 3600);
  expect((await refresh()).status).toBe(200);
});

test('a client with a secret pushes no more requests than its users could answer', async () => {
  await using hub = await startAuthorizationServer();
  const form = { response_type: 'code', client_id: 'service-wiki' };
  const push = (client: string, secret: string) =>
    hub.post('par', { ...form, client_id: client }, basic(client, secret));
  for (let made = 0; made < 8; made += 1)
    expect((await push('service-wiki', wiki.secret)).status).toBe(201);
  expect((await push('service-wiki', wiki.secret)).status).toBe(429);
  expect((await push('service-forum', forum.secret)).status).toBe(201);
  hub.skipSeconds(61);
  expect((await push('service-wiki', wiki.secret)).status).toBe(201);
});
