import { describe, expect, test } from 'vitest';
import { formLogin, useLoginWorlds } from '../../../test/support/login-world.ts';
import type { Authenticator } from '../../plugin/host/authenticator.ts';

const world = useLoginWorlds();

describe('a login form', () => {
  test('answers the same for a wrong password and an unknown user', async () => {
    const { users, login } = await world();
    await users.create({ name: 'ada' });
    const wrong = await login('ada', 'wrong', 'own');
    const unknown = await login('nobody', 'wrong', 'own');
    expect(wrong).toMatchObject({ outcome: 'refused', status: 401 });
    expect(unknown).toEqual(wrong);
  });

  test('locks a name however it is spelt, whether or not it exists', async () => {
    const { login } = await world({ allow_all: true, lockout_attempts: 3 });
    const answers: unknown[] = [];
    for (const spelling of ['Ada', 'ADA', ' ada ', 'ada']) {
      answers.push(await login(spelling, 'wrong'));
    }
    expect(answers.at(2)).toMatchObject({ status: 401 });
    expect(answers.at(3)).toMatchObject({ status: 429, retryAfterSeconds: 30 });
    expect(await login('ada', 'right')).toMatchObject({ status: 429 });
  });

  test('bounds the password checks that run, and those that wait for them', async () => {
    const gate = Promise.withResolvers<void>();
    let running = 0;
    let max = 0;
    const slow: Authenticator = {
      login: formLogin,
      async authenticate() {
        running += 1;
        max = Math.max(max, running);
        await gate.promise;
        running -= 1;
        return { outcome: 'refused', reason: 'credentials' };
      },
    };
    const limits = { concurrent_logins: 2, max_pending_logins: 9, lockout_attempts: 100 };
    const { login } = await world({ allow_all: true, ...limits }, { slow });
    const logins = Array.from({ length: 12 }, (_, index) => login(`u${index}`, 'x', 'slow'));
    const first = await Promise.race(logins);
    expect(first).toMatchObject({ outcome: 'refused', status: 429 });
    expect(first).toHaveProperty(
      'retryAfterSeconds',
      expect.toSatisfy((n) => n >= 2 && n <= 10),
    );
    expect('message' in first && String(first.message)).toContain('Many users are logging in');
    await expect.poll(() => running).toBe(2);
    gate.resolve();
    const statuses = (await Promise.all(logins)).map(
      (result) => 'status' in result && result.status,
    );
    expect(statuses.filter((status) => status === 401)).toHaveLength(9);
    expect(statuses.filter((status) => status === 429)).toHaveLength(3);
    expect(max).toBe(2);
  });

  test('does not blame the person when the provider fails', async () => {
    const failing: Authenticator = {
      login: formLogin,
      authenticate: () => Promise.reject(new Error('connect ECONNREFUSED 10.0.0.5:389')),
    };
    const { login, throttle } = await world({ lockout_attempts: 1 }, { failing });
    await expect(login('ada', 'x', 'failing')).rejects.toMatchObject({
      code: 'unavailable',
      message: 'Logging in is not possible just now.',
    });
    expect(await throttle.list()).toEqual([]);
  });

  test('without a name is refused before anything is asked', async () => {
    const { login } = await world({ allow_all: true });
    expect(await login('  ')).toMatchObject({ outcome: 'refused', status: 401 });
  });

  test('of an authenticator that is not there or takes none is refused', async () => {
    const { login } = await world();
    await expect(login('ada', 'right', 'nope')).rejects.toMatchObject({ code: 'not_found' });
    await expect(login('ada', 'right', 'work')).rejects.toMatchObject({ code: 'bad_request' });
  });
});
