import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { ageLogins } from '../support/login-age.ts';
import {
  type Asking,
  addPasskey,
  ask,
  createPasskeyHub,
  fieldsOf,
  openForm,
  originOf,
  post,
  recoveryCodesOn,
} from '../support/passkey-hub.ts';
import { acceptInvitation, inviteUser, testPassword } from '../support/password-hub.ts';
import {
  createSoftwarePasskey,
  type SoftwarePasskey,
  type Tampering,
} from '../support/software-authenticator.ts';
import { submitLogin, type TestHub } from '../support/test-hub.ts';

let hub: TestHub;
beforeAll(async () => {
  hub = await createPasskeyHub(['ada', 'bob'], { Authenticator: { lockout_attempts: 1000 } });
});
afterAll(() => hub[Symbol.asyncDispose]());

let counter = 0;
interface Owner {
  readonly name: string;
  readonly browser: FakeBrowser;
  readonly passkey: SoftwarePasskey;
}

/** A new user with a passkey. */
async function owner(tampering: Tampering = {}): Promise<Owner> {
  counter += 1;
  const name = `user${counter}`;
  const { secret } = await inviteUser(hub, name);
  await acceptInvitation(hub, secret, testPassword);
  const browser = await hub.logIn(name, testPassword);
  return { name, browser, passkey: await addPasskey(hub, browser, tampering) };
}

const newVisit = () => openForm(hub, new FakeBrowser(), 'hub/login?next=%2Fhub%2Ftoken');

async function logInBy(passkey: SoftwarePasskey, tampering: Tampering = {}, visit?: Asking) {
  const asking = visit ?? (await newVisit());
  const question = await ask(asking, 'login');
  const fields = {
    ...fieldsOf(question, passkey.assert(question.publicKey, tampering)),
    next: '/hub/token',
  };
  return { asking, fields, answer: await post(asking, 'hub/login/passkey', fields) };
}

const isLoggedIn = async ({ browser }: Pick<Asking, 'browser'>) =>
  (await browser.request(`${hub.url}hub/home`)).status === 200;

/** Passes the password, and stands before the second step. */
async function halfway(name: string): Promise<Asking> {
  const browser = new FakeBrowser();
  const answer = await submitLogin(browser, hub.url, name, testPassword, '/hub/token');
  expect(answer.headers.location).toBe('/hub/login/second-factor');
  return openForm(hub, browser, 'hub/login/second-factor');
}

async function passStep(asking: Asking, passkey: SoftwarePasskey, tampering: Tampering = {}) {
  const question = await ask(asking, 'second-factor');
  const fields = fieldsOf(question, passkey.assert(question.publicKey, tampering));
  return post(asking, 'hub/login/second-factor', fields);
}

test('a passkey logs in by itself, for the host and origin of the public URL', async () => {
  const { passkey } = await owner();
  const { asking, answer } = await logInBy(passkey);
  expect(answer.status).toBe(303);
  expect(answer.headers.location).toBe('/hub/token');
  expect(await isLoggedIn(asking)).toBe(true);
  const question = await ask(await newVisit(), 'login');
  expect(question.publicKey).toMatchObject({ rpId: 'localhost', userVerification: 'required' });
  expect(question.publicKey.allowCredentials ?? []).toEqual([]);
});

describe('a login by passkey is refused', () => {
  test.each<[string, Tampering]>([
    ['that was signed on a page of another site', { origin: 'https://evil.test' }],
    ['that was signed on another port', { origin: 'http://localhost:1' }],
    ['that was signed below the host', { origin: 'http://eve.localhost' }],
    ['that was signed for another host', { rpId: 'evil.test' }],
    ['that was signed in a frame of another site', { crossOrigin: true }],
    ['with a challenge of the attacker', { challenge: 'AAAA' }],
    ['with the kind of signature that adds a passkey', { type: 'webauthn.create' }],
    ['without a PIN, finger or face', { flags: 0b001 }],
    ['without a touch', { flags: 0b100 }],
    ['without the handle of its user', { userHandle: '' }],
    ['with the handle of another user', { userHandle: Buffer.from('other').toString('base64url') }],
  ])('%s', async (_what, tampering) => {
    const { passkey } = await owner();
    const { asking, answer } = await logInBy(passkey, tampering);
    expect(answer.status).toBe(401);
    expect(answer.body).toContain('This passkey was not accepted.');
    expect(await isLoggedIn(asking)).toBe(false);
    expect((await logInBy(passkey)).answer.status).toBe(303);
  });

  test('when it is sent a second time, by whichever browser', async () => {
    const { passkey } = await owner();
    const { asking, fields, answer } = await logInBy(passkey);
    expect(answer.status).toBe(303);
    await post(await openForm(hub, asking.browser, 'hub/account'), 'hub/logout', {});
    const again = await post(asking, 'hub/login/passkey', fields);
    expect(again.status).toBe(401);
    const other = await newVisit();
    expect((await post(other, 'hub/login/passkey', fields)).status).toBe(401);
    expect(await isLoggedIn(other)).toBe(false);
  });

  test('of many copies at once, one gets in', async () => {
    const { passkey } = await owner();
    const asking = await newVisit();
    const question = await ask(asking, 'login');
    const fields = fieldsOf(question, passkey.assert(question.publicKey));
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => post(asking, 'hub/login/passkey', fields)),
    );
    expect(answers.filter(({ status }) => status === 303)).toHaveLength(1);
  });

  test('in another browser than the one that asked', async () => {
    const { passkey } = await owner();
    const victim = await newVisit();
    const thief = await newVisit();
    const question = await ask(victim, 'login');
    const fields = fieldsOf(question, passkey.assert(question.publicKey));
    expect((await post(thief, 'hub/login/passkey', fields)).status).toBe(401);
  });

  test('when its counter went back, as that of a copy does', async () => {
    const { passkey } = await owner({ signCount: 7 });
    expect((await logInBy(passkey)).answer.status).toBe(303);
    for (const signCount of [8, 1, 0]) {
      expect((await logInBy(passkey, { signCount })).answer.status).toBe(401);
    }
  });

  test('of a user who is gone, and with a passkey that is removed', async () => {
    const gone = await owner();
    await hub.api(`/users/${gone.name}`, 'admin-service-token', { method: 'DELETE' });
    expect((await logInBy(gone.passkey)).answer.status).toBe(401);
    const { browser, passkey } = await owner();
    const asking = await openForm(hub, browser, 'hub/account');
    await post(asking, 'hub/account/passkeys/remove', { passkey: passkey.id });
    expect((await logInBy(passkey)).answer.status).toBe(401);
  });

  test.each(['', '{', '{"id":"a"}', '[]', 'null', `{"id":"${'A'.repeat(70_000)}"}`])(
    'whatever is sent in its place: %.20s',
    async (text) => {
      const asking = await newVisit();
      const { state } = await ask(asking, 'login');
      const fields = { passkey_state: state, passkey_response: text };
      expect((await post(asking, 'hub/login/passkey', fields)).status).toBe(401);
    },
  );

  test('from a form of another site', async () => {
    const { passkey } = await owner();
    const asking = await newVisit();
    const question = await ask(asking, 'login');
    const fields = fieldsOf(question, passkey.assert(question.publicKey));
    for (const headers of [{ 'sec-fetch-site': 'cross-site' }, { origin: 'https://evil.test' }]) {
      expect((await post(asking, 'hub/login/passkey', fields, headers)).status).toBe(403);
      const body = { purpose: 'login' };
      expect((await post(asking, 'hub/passkey-question', body, headers)).status).toBe(403);
    }
    const forged = { ...asking, csrf: 'x' };
    expect((await post(forged, 'hub/login/passkey', fields)).status).toBe(403);
    expect((await post(asking, 'hub/login/passkey', fields)).status).toBe(303);
  });
});

describe('with a passkey, the password alone', () => {
  test('does not log in; the passkey does, with or without a PIN', async () => {
    const { name, passkey } = await owner();
    const asking = await halfway(name);
    expect(await isLoggedIn(asking)).toBe(false);
    const answer = await passStep(asking, passkey);
    expect(answer.headers.location).toBe('/hub/token');
    expect(await isLoggedIn(asking)).toBe(true);
    const key = await owner({ flags: 0b001 });
    expect((await logInBy(key.passkey, { flags: 0b001 })).answer.status).toBe(401);
    expect((await passStep(await halfway(key.name), key.passkey, { flags: 0b001 })).status).toBe(
      303,
    );
  });

  test('opens neither the authorize endpoint nor the API', async () => {
    const { name } = await owner();
    const { browser } = await halfway(name);
    const authorize = await browser.request(
      `${hub.url}hub/api/oauth2/authorize?client_id=x&response_type=code`,
    );
    expect(authorize.status).not.toBe(200);
    expect(authorize.headers.location ?? '/hub/login').toContain('/hub/login');
    expect((await browser.request(`${hub.url}hub/api/user`)).status).toBe(403);
    const token = await hub.api(`/users/${name}/tokens`, undefined, {
      method: 'POST',
      body: JSON.stringify({ auth: { username: name, password: testPassword } }),
    });
    expect(token.status).toBe(403);
  });

  test('is not helped by the passkey of another user', async () => {
    const one = await owner();
    const other = await owner();
    const asking = await halfway(one.name);
    expect((await passStep(asking, other.passkey)).status).toBe(401);
    const posing = { userHandle: one.passkey.userHandle };
    expect((await passStep(asking, other.passkey, posing)).status).toBe(401);
    expect(await isLoggedIn(asking)).toBe(false);
  });

  test('nor by an answer to a question for a login, or to that of another login', async () => {
    const { name, passkey } = await owner();
    const asking = await halfway(name);
    const login = await ask(asking, 'login');
    const fields = fieldsOf(login, passkey.assert(login.publicKey));
    expect((await post(asking, 'hub/login/second-factor', fields)).status).toBe(401);
    const question = await ask(await halfway(name), 'second-factor');
    const foreign = fieldsOf(question, passkey.assert(question.publicKey));
    expect((await post(asking, 'hub/login/second-factor', foreign)).status).toBe(401);
    // Nor does the answer for the second step log in.
    const own = await ask(asking, 'second-factor');
    const step = fieldsOf(own, passkey.assert(own.publicKey));
    expect((await post(asking, 'hub/login/passkey', step)).status).toBe(401);
  });

  test('nor by a passkey that once asked for a PIN and does no longer', async () => {
    const { name, passkey } = await owner();
    expect((await passStep(await halfway(name), passkey, { flags: 0b001 })).status).toBe(401);
  });
});

describe('adding a passkey', () => {
  test('needs a recent login, shown by the passkey there is', async () => {
    const { name, browser, passkey } = await owner();
    await ageLogins(hub);
    const asking = await openForm(hub, browser, 'hub/account');
    const question = await ask(asking, 'add');
    const second = createSoftwarePasskey(question.publicKey, { origin: originOf(hub) });
    const fields = { name: 'Phone', ...fieldsOf(question, second.creation) };
    const asks = await post(asking, 'hub/account/passkeys', fields);
    expect(asks.status).toBe(403);
    expect(asks.body).toContain('data-passkey="confirm"');
    expect((await logInBy(second)).answer.status).toBe(401);
    const waiting = /name="pending_form" value="([^"]+)"/.exec(asks.body)?.[1] ?? '';
    const send = async (by: SoftwarePasskey, tampering: Tampering = {}) => {
      const confirm = await ask(asking, 'confirm');
      const response = by.assert(confirm.publicKey, tampering);
      return post(asking, 'hub/account/passkeys', {
        pending_form: waiting,
        ...fieldsOf(confirm, response),
      });
    };
    const other = await owner();
    expect((await send(other.passkey)).status).toBe(403);
    expect((await send(passkey, { flags: 0b001 })).status).toBe(403);
    // Nor is a question that was for something else answered by it.
    const response = passkey.assert({ ...question.publicKey, rpId: 'localhost' });
    const forOther = { pending_form: waiting, ...fieldsOf(question, response) };
    expect((await post(asking, 'hub/account/passkeys', forOther)).status).toBe(403);
    expect((await send(passkey)).status).toBe(303);
    expect((await logInBy(second)).answer.status).toBe(303);
    expect((await passStep(await halfway(name), second)).status).toBe(303);
  });

  test('so does removing one', async () => {
    const { browser, passkey } = await owner();
    await ageLogins(hub);
    const asking = await openForm(hub, browser, 'hub/account');
    const answer = await post(asking, 'hub/account/passkeys/remove', { passkey: passkey.id });
    expect(answer.status).toBe(403);
    expect((await logInBy(passkey)).answer.status).toBe(303);
  });

  test('removing one ends the logins of whoever has it, and not that of the owner', async () => {
    const { browser, passkey } = await owner();
    const { asking: thief, answer } = await logInBy(passkey);
    expect(answer.status).toBe(303);
    const asking = await openForm(hub, browser, 'hub/account');
    await post(asking, 'hub/account/passkeys/remove', { passkey: passkey.id });
    expect(await isLoggedIn(thief)).toBe(false);
    expect(await isLoggedIn({ browser })).toBe(true);
  });

  test.each<[string, Tampering]>([
    ['made on a page of another site', { origin: 'https://evil.test' }],
    ['made for another host', { rpId: 'evil.test' }],
    ['made in a frame of another site', { crossOrigin: true }],
    ['made with another challenge', { challenge: 'AAAA' }],
    ['made without a touch', { flags: 0 }],
    ['that signs in place of being made', { type: 'webauthn.get' }],
  ])('is refused for one %s', async (_what, tampering) => {
    const browser = await hub.logIn('bob', testPassword);
    await expect(addPasskey(hub, browser, tampering)).rejects.toThrow('could not be added');
  });

  test('is refused with a certificate, whose list of revocations would be fetched', async () => {
    // {alg: -7, sig: '', x5c: ['']}
    const statement = Buffer.from('a363616c67266373696740637835638140', 'hex');
    const browser = await hub.logIn('bob', testPassword);
    const attestation = { format: 'packed', statement };
    await expect(addPasskey(hub, browser, { attestation })).rejects.toThrow('could not be added');
    expect(hub.logLines).toContainEqual(
      expect.objectContaining({ problem: 'an attestation was not asked for' }),
    );
  });

  test('is refused for a question of another login, and the second time', async () => {
    const browser = await hub.logIn('bob', testPassword);
    const other = await owner();
    const asking = await openForm(hub, browser, 'hub/account');
    const question = await ask(asking, 'add');
    const made = createSoftwarePasskey(question.publicKey, { origin: originOf(hub) });
    const fields = { name: 'x', ...fieldsOf(question, made.creation) };
    const remote = await openForm(hub, other.browser, 'hub/account');
    expect((await post(remote, 'hub/account/passkeys', fields)).status).toBe(400);
    expect(recoveryCodesOn(await post(asking, 'hub/account/passkeys', fields))).toHaveLength(10);
    expect((await post(asking, 'hub/account/passkeys', fields)).status).toBe(400);
    await post(asking, 'hub/account/passkeys/remove', { passkey: made.id });
  });

  test('offers a name in the language of the browser', async () => {
    const browser = await hub.logIn('bob', testPassword);
    const headers = {
      'accept-language': 'de',
      'user-agent': 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
    };
    const { body } = await browser.request(`${hub.url}hub/account`, { headers });
    expect(body).toContain('value="Firefox unter Linux"');
  });

  test('one cannot touch the passkeys of another user', async () => {
    const { passkey } = await owner();
    const asking = await openForm(hub, await hub.logIn('bob', testPassword), 'hub/account');
    const path = 'hub/account/passkeys';
    const rename = await post(asking, `${path}/rename`, { passkey: passkey.id, name: 'Mine' });
    expect(rename.status).toBe(404);
    expect((await post(asking, `${path}/remove`, { passkey: passkey.id })).status).toBe(404);
    expect((await logInBy(passkey)).answer.status).toBe(303);
  });
});

test('an administrator removes the passkeys of a user who lost them', async () => {
  const { name, passkey } = await owner();
  const { asking: thief } = await logInBy(passkey);
  expect(await isLoggedIn(thief)).toBe(true);
  const asking = await openForm(
    hub,
    await hub.logIn('ada', testPassword),
    `hub/admin/users/${name}`,
  );
  const answer = await post(asking, `hub/admin/users/${name}/remove-second-factor`, {});
  expect(answer.status).toBe(303);
  expect(await isLoggedIn(thief)).toBe(false);
  expect((await logInBy(passkey)).answer.status).toBe(401);
  await hub.logIn(name, testPassword);
});

test('the log and the audit log tell of each use, and of what was refused', async () => {
  const { name, passkey } = await owner();
  await logInBy(passkey);
  await logInBy(passkey, { origin: 'https://evil.test' });
  const answer = await hub.api(`/audit?target=${name}`, 'admin-service-token');
  const text = await answer.text();
  expect(text).toContain('"passkey.add"');
  expect(text).toContain('"passkey.use"');
  expect(hub.logLines).toContainEqual(
    expect.objectContaining({
      msg: 'passkey refused',
      user: name,
      problem: expect.stringContaining('origin'),
    }),
  );
});
