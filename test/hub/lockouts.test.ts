import { describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { submitTo } from '../support/pages.ts';
import { hashesDuring } from '../support/password-hashes.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { runCommand } from '../support/run-command.ts';
import { submitForm, submitLogin, type TestHub } from '../support/test-hub.ts';

const limits = { lockout_attempts: 3, lockout_delay: 600, lockout_max_delay: 900 };

async function guess(hub: TestHub, userName: string, headers: Record<string, string> = {}) {
  const browser = new FakeBrowser();
  const page = await browser.request(`${hub.url}hub/login`, { headers });
  const withHeaders = {
    ...browser,
    request: (url: string, init: object = {}) =>
      browser.request(url, {
        ...init,
        headers: { ...(init as { headers?: object }).headers, ...headers },
      }),
  } as unknown as FakeBrowser;
  return submitForm(withHeaders, page, { username: userName, password: 'not the password' });
}

interface Lockout {
  readonly kind: string;
  readonly subject: string;
  readonly failures: number;
}

async function lockoutsOf(hub: TestHub): Promise<Lockout[]> {
  const answer = await hub.api('/lockouts', 'admin-service-token');
  return ((await answer.json()) as { lockouts: Lockout[] }).lockouts;
}

describe('a lock-out', () => {
  test('counts one person under every spelling of the name', async () => {
    await using hub = await createPasswordHub(['ada', 'zoë'], { Authenticator: limits });
    const spellings = ['zoë', 'ZOË', ' zoe\u0308 '];
    for (const name of spellings) expect((await guess(hub, name)).status).toBe(401);
    for (const name of spellings) expect((await guess(hub, name)).status).toBe(429);
    expect(await lockoutsOf(hub)).toMatchObject([{ kind: 'user', subject: 'zoë', failures: 3 }]);
    const right = await submitLogin(new FakeBrowser(), hub.url, 'Zoë', testPassword);
    expect(right.status).toBe(429);
    expect(Number(right.headers['retry-after'])).toBeGreaterThan(500);
    expect((await hub.logIn('ada', testPassword)).cookieNames()).toContain('hub-hub-login');
  });

  test('is the same for an unknown name: neither status nor text reveals it', async () => {
    await using hub = await createPasswordHub(['ada', 'bob'], { Authenticator: limits });
    const seen = async (name: string) => {
      const answers = [];
      for (let round = 0; round < 5; round += 1) {
        const { status, body, headers } = await guess(hub, name);
        const text = body
          .replaceAll(/name="_csrf" value="[^"]*"/g, '')
          .replaceAll(/name="csrf-token" content="[^"]*"/g, '')
          .replaceAll(name, 'NAME')
          .replaceAll(/\d+ (second|minute)s?/g, 'TIME');
        answers.push({ status, text, hasRetry: headers['retry-after'] !== undefined });
      }
      return answers;
    };
    expect(await seen('nobody-here')).toEqual(await seen('bob'));
  });

  test('falls on an address that tries many names', async () => {
    await using hub = await createPasswordHub(['ada'], {
      Hub: { trusted_proxies: ['127.0.0.1'] },
      Authenticator: { ...limits, lockout_attempts: 1 },
    });
    const from = (address: string) => ({ 'x-forwarded-for': address });
    for (let index = 0; index < 10; index += 1) {
      expect((await guess(hub, `name${index}`, from('2001:db8::1'))).status).toBe(401);
    }
    // Any address of the same /64 belongs to the same owner.
    expect((await guess(hub, 'another', from('2001:db8::ffff'))).status).toBe(429);
    expect((await guess(hub, 'another', from('198.51.100.7'))).status).toBe(401);
    // What the client itself puts before the proxy's address counts for nothing.
    expect((await guess(hub, 'yet-another', from('203.0.113.9, 2001:db8::2'))).status).toBe(429);
    const addresses = (await lockoutsOf(hub)).filter(({ kind }) => kind === 'address');
    expect(addresses).toMatchObject([{ subject: '2001:db8:0:0::/64' }]);
  });

  test('is not slipped past by guesses sent all at once', async () => {
    await using hub = await createPasswordHub(['ada', 'bob'], { Authenticator: limits });
    const answers = await Promise.all(Array.from({ length: 15 }, () => guess(hub, 'bob')));
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(3);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(12);
  });

  test('costs a password comparison also for an unknown name', async () => {
    await using hub = await createPasswordHub(['ada', 'bob'], {
      Authenticator: { lockout_attempts: 50 },
    });
    // The first comparison with nothing makes what later ones compare with.
    await guess(hub, 'warm-up');
    const known = await hashesDuring(() => guess(hub, 'bob'));
    expect(known).toHaveLength(1);
    expect(await hashesDuring(() => guess(hub, 'nobody-here'))).toEqual(known);
  });

  test('outlives a restart', async () => {
    await using hub = await createPasswordHub(['ada', 'bob'], { Authenticator: limits });
    for (let round = 0; round < 3; round += 1) await guess(hub, 'bob');
    await using again = await hub.restart();
    expect((await guess(again, 'bob')).status).toBe(429);
  });

  test('is seen and lifted by administrators only', async () => {
    await using hub = await createPasswordHub(['ada', 'bob', 'carol'], { Authenticator: limits });
    for (let round = 0; round < 3; round += 1) await guess(hub, 'bob');

    const carol = await hub.logIn('carol', testPassword);
    expect((await carol.request(`${hub.url}hub/admin/lockouts`)).status).toBe(403);
    expect((await hub.api('/lockouts', undefined)).status).toBe(403);
    expect(
      (await hub.api('/lockouts?kind=user&subject=bob', undefined, { method: 'DELETE' })).status,
    ).toBe(403);
    expect(
      (await hub.api('/lockouts?kind=user', 'admin-service-token', { method: 'DELETE' })).status,
    ).toBe(400);

    const ada = await hub.logIn('ada', testPassword);
    const page = await ada.request(`${hub.url}hub/admin/lockouts`);
    expect(page.body).toContain('bob');
    expect((await submitTo(ada, page, '/hub/admin/lockouts/lift')).status).toBe(303);
    expect((await ada.request(`${hub.url}hub/admin/lockouts`)).body).toContain(
      'No one is locked out.',
    );
    await hub.logIn('bob', testPassword);

    for (let round = 0; round < 3; round += 1) await guess(hub, 'bob');
    const lifted = await hub.api('/lockouts?kind=user&subject=bob', 'admin-service-token', {
      method: 'DELETE',
    });
    expect(lifted.status).toBe(204);
    await hub.logIn('bob', testPassword);
  });
});

describe('an attacker who guesses', () => {
  const from = (address: string) => ({ 'x-forwarded-for': address });
  const behindProxy = { Hub: { trusted_proxies: ['127.0.0.1'] }, Authenticator: limits };

  test('locks neither another address out nor a browser that is known', async () => {
    await using hub = await createPasswordHub(['ada', 'bob'], behindProxy);
    for (let round = 0; round < 4; round += 1) await guess(hub, 'ada', from('198.51.100.7'));
    expect((await guess(hub, 'ada', from('198.51.100.7'))).status).toBe(429);
    const laptop = await hub.logIn('ada', testPassword);
    await laptop.open(`${hub.url}hub/logout`);
    // Now from the very address of the laptop.
    for (let round = 0; round < 4; round += 1) await guess(hub, 'ada');
    expect((await submitLogin(new FakeBrowser(), hub.url, 'ada', testPassword)).status).toBe(429);
    expect((await submitLogin(laptop, hub.url, 'ada', 'wrong')).status).toBe(401);
    expect((await submitLogin(laptop, hub.url, 'ada', testPassword)).status).toBe(302);
  });

  test('gets no free guesses at others with a browser that is known for their own name', async () => {
    await using hub = await createPasswordHub(['ada', 'eve'], { Authenticator: limits });
    const browser = await hub.logIn('eve', testPassword);
    await browser.open(`${hub.url}hub/logout`);
    for (let round = 0; round < 3; round += 1) {
      expect((await submitLogin(browser, hub.url, 'ada', 'wrong')).status).toBe(401);
    }
    expect((await submitLogin(browser, hub.url, 'ada', 'wrong')).status).toBe(429);
  });
});

test('the command line lists lock-outs and lifts them, without a login', async () => {
  await using hub = await createPasswordHub(['ada'], { Authenticator: limits });
  for (let round = 0; round < 3; round += 1) await guess(hub, 'ada');
  const run = (...args: string[]) => runCommand(hub.directory, ['lockouts', ...args]);
  expect(await run('list')).toMatchObject({
    exitCode: 0,
    stdout: expect.stringMatching(/^user\t"ada"\t3\t\d{4}-/),
  });
  expect((await run('lift', 'user', 'bob')).exitCode).toBe(1);
  expect((await run('lift', 'user', 'ada')).exitCode).toBe(0);
  expect((await submitLogin(new FakeBrowser(), hub.url, 'ada', testPassword)).status).toBe(302);
});
