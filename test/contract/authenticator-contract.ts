import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type {
  AuthenticationResult,
  Authenticator,
  AuthenticatorPlugin,
  LoginRequest,
} from '../../src/plugin.ts';
import { authenticatorProblem } from '../../src/plugin-host/created-shape.ts';
import { isForm } from '../../src/plugin-host/login-kinds.ts';
import { shapeProblem } from '../../src/plugin-host/plugin-shape.ts';
import { createTestHost, type TestHost, type TestHostOptions } from './test-host.ts';

/** What the suite must know of the authenticator under test. */
export interface AuthenticatorContract {
  readonly plugin: AuthenticatorPlugin;
  /** Options as they would stand in the configuration, secrets as text. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Accounts and surroundings that the authenticator needs. */
  readonly host?: TestHostOptions;
  /** For a login by form: fields that are right, and the name they lead to. */
  readonly form?: {
    readonly valid: Readonly<Record<string, string>>;
    readonly userName: string;
    /** Fields that must be refused as wrong credentials. */
    readonly wrong: readonly Readonly<Record<string, string>>[];
    /** Name of the field with the secret. */
    readonly secretField: string;
  };
}

/**
 * Tests what the hub relies on in every authenticator. Run it on your own plugin:
 *
 *     describeAuthenticator('my-login', { plugin, options: {}, form: { … } });
 */
export function describeAuthenticator(name: string, contract: AuthenticatorContract): void {
  describe(`${name} keeps the contract of authenticators`, () => {
    describePlugin(contract);
    describeAbilities(contract);
    if (contract.form !== undefined) describeForm(contract, contract.form);
  });
}

async function create({
  plugin,
  options,
  host,
}: AuthenticatorContract): Promise<{ authenticator: Authenticator; host: TestHost }> {
  const testHost = await createTestHost(host);
  const authenticator = await plugin.create(plugin.optionsSchema.parse(options), testHost);
  return { authenticator, host: testHost };
}

function describePlugin(contract: AuthenticatorContract): void {
  const { plugin, options } = contract;

  test('it is a plugin of the right shape', () => {
    expect(shapeProblem(plugin)).toBeUndefined();
    expect(plugin.kind).toBe('authenticator');
  });

  test('its schema accepts its own options and refuses a key it does not know', () => {
    expect(plugin.optionsSchema.safeParse(options).success).toBe(true);
    const misspelt = plugin.optionsSchema.safeParse({ ...options, no_such_option: true });
    expect(misspelt.success).toBe(false);
  });

  test('its options can be described to editors, the secret ones among them', () => {
    const schema = z.toJSONSchema(plugin.optionsSchema, { io: 'input', unrepresentable: 'any' });
    const known = Object.keys(schema.properties ?? {});
    for (const option of plugin.secretOptions ?? []) {
      expect(known).toContain(option.split('.')[0]);
    }
  });

  test('it finds no problem in options that are right', async () => {
    const host = await createTestHost(contract.host);
    const parsed = plugin.optionsSchema.parse(options);
    expect(plugin.findProblems?.(parsed, host) ?? []).toEqual([]);
  });
}

function describeAbilities(contract: AuthenticatorContract): void {
  test('its abilities fit the way it is offered', async () => {
    const { authenticator } = await create(contract);
    const { login } = authenticator;
    expect(authenticatorProblem(authenticator)).toBeUndefined();
    expect('authenticate' in authenticator).toBe(login.kind === 'form');
    expect('identify' in authenticator).toBe(login.kind === 'request');
    expect('beginLogin' in authenticator).toBe(login.kind === 'external');
  });

  test('its fields can be labelled, told apart and filled in by a password manager', async () => {
    const { authenticator } = await create(contract);
    if (authenticator.login.kind !== 'form') return;
    const { fields } = authenticator.login;
    expect(new Set(fields.map((field) => field.name)).size).toBe(fields.length);
    for (const field of fields) {
      expect(field.label).not.toBe('');
      expect(field.autocomplete).not.toBe('');
    }
  });

  test('two of it can live side by side and be closed more than once', async () => {
    const first = await create(contract);
    const second = await create(contract);
    for (const { authenticator } of [first, second, first]) {
      await authenticator[Symbol.asyncDispose]?.();
    }
  });
}

function describeForm(
  contract: AuthenticatorContract,
  form: NonNullable<AuthenticatorContract['form']>,
): void {
  async function attempt(fields: Readonly<Record<string, string>>) {
    const { authenticator, host } = await create(contract);
    const result = await authenticate(authenticator, fields);
    await authenticator[Symbol.asyncDispose]?.();
    return { result, host };
  }

  test('the right fields name the user', async () => {
    const { result } = await attempt(form.valid);
    expect(result).toMatchObject({ outcome: 'authenticated', user: { name: form.userName } });
  });

  test('wrong credentials are an answer, not an error', async () => {
    for (const fields of form.wrong) {
      expect((await attempt(fields)).result).toMatchObject({
        outcome: 'refused',
        reason: 'credentials',
      });
    }
  });

  test('an empty form is refused', async () => {
    expect((await attempt({})).result).toMatchObject({ outcome: 'refused' });
    const blank = Object.fromEntries(Object.keys(form.valid).map((field) => [field, '']));
    expect((await attempt(blank)).result).toMatchObject({ outcome: 'refused' });
  });

  test.for([
    ['a megabyte', 'x'.repeat(1 << 20)],
    ['half a surrogate pair', '\uD800'],
    ['control characters', '\u0000\r\n'],
    ['a name of the prototype', '__proto__'],
    ['characters of a query language', '*)(uid=*))(|(uid=*'],
  ])('%s in every field is refused without an error', async ([, text = '']) => {
    const odd = Object.fromEntries(Object.keys(form.valid).map((field) => [field, text]));
    const { result } = await attempt({ ...odd, [form.secretField]: `wrong ${text}` });
    expect(result).toMatchObject({ outcome: 'refused' });
  });

  test('the secret shows neither in the result nor in the log', async () => {
    const secret = form.valid[form.secretField] ?? '';
    const wrongOnes = form.wrong.map((wrong) => ({ ...wrong, extra: secret }));
    const forms: Readonly<Record<string, string>>[] = [form.valid, ...wrongOnes];
    for (const fields of forms) {
      const { result, host } = await attempt(fields);
      const shown = `${JSON.stringify(result)}${host.logged.join('\n')}`;
      for (const value of new Set([secret, fields[form.secretField] ?? secret])) {
        if (value !== '') expect(shown).not.toContain(value);
      }
    }
  });

  test('many logins at once do not disturb one another', async () => {
    const { authenticator } = await create(contract);
    const [wrong = {}] = form.wrong;
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        authenticate(authenticator, index % 2 === 0 ? form.valid : wrong),
      ),
    );
    const outcomes = results.map((result) => result.outcome);
    expect(outcomes).toEqual(
      Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? 'authenticated' : 'refused')),
    );
    await authenticator[Symbol.asyncDispose]?.();
  });
}

function authenticate(
  authenticator: Authenticator,
  fields: Readonly<Record<string, string>>,
): Promise<AuthenticationResult> {
  const request: LoginRequest = {
    address: '192.0.2.1',
    peerAddress: '192.0.2.1',
    isTrustedProxy: false,
    userAgent: 'contract suite',
    headers: {},
    signal: AbortSignal.timeout(30_000),
  };
  if (!isForm(authenticator)) throw new TypeError('only a login by form takes fields');
  return authenticator.authenticate(new Map(Object.entries(fields)), request);
}
