import { expect, test } from 'vitest';
import { authenticatorContract, createTestHost } from '../test/contract/testing.ts';
import { anyRequest } from '../test/support/plugin-login.ts';
import plugin from './dummy.ts';

test.for(
  authenticatorContract({
    plugin,
    options: { password: 'the one password' },
    form: {
      valid: { username: 'anybody', password: 'the one password' },
      userName: 'anybody',
      wrong: [
        { username: 'anybody', password: 'another password' },
        { username: 'anybody', password: 'the one passwor' },
      ],
      secretField: 'password',
    },
  }),
)('keeps the contract: $name', ({ run }) => run());

async function create(options: object, isLoopbackOnly = true) {
  const host = await createTestHost({ isLoopbackOnly });
  return { host, authenticator: plugin.create(plugin.optionsSchema.parse(options), host) };
}

test('without a password every password is right, and so is none', async () => {
  const authenticator = await (await create({})).authenticator;
  for (const password of ['', 'anything']) {
    const form = new Map(Object.entries({ username: 'ada', password }));
    expect(await authenticator.authenticate(form, anyRequest())).toEqual({
      outcome: 'authenticated',
      user: { name: 'ada' },
    });
  }
});

test('it warns when it starts', async () => {
  const { host } = await create({});
  expect(host.logged.join()).toContain('under any name they give');
});

test('it does not start where other machines can reach the hub, unless it is told to', async () => {
  await expect(create({}, false)).rejects.toThrow('allow_non_loopback: must be true');
  await expect(create({ password: 'x' }, false)).rejects.toThrow('allow_non_loopback');
  await expect(create({ allow_non_loopback: true }, false)).resolves.toBeDefined();
});
