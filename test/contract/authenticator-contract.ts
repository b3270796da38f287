import assert from 'node:assert/strict';
import { z } from 'zod';
import { tryAuthenticator } from '../../src/plugin/host/create-plugins.ts';
import { isForm } from '../../src/plugin/host/login-kinds.ts';
import { authenticatorProblem, shapeProblem } from '../../src/plugin/host/plugin-shape.ts';
import type {
  AuthenticationResult,
  Authenticator,
  AuthenticatorPlugin,
  LoginRequest,
} from '../../src/plugin/plugin.ts';
import type { ContractTest } from './contract-test.ts';
import { createTestHost, type TestHost, type TestHostOptions } from './test-host.ts';

/** What the suite must know of the authenticator under test. */
export interface AuthenticatorContract {
  readonly plugin: AuthenticatorPlugin;
  /** Options as they would stand in the configuration, secrets as text. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Accounts and surroundings that the authenticator needs. */
  readonly host?: TestHostOptions;
  /** For a login by form: fields that are right, and the name they lead to. */
  readonly form?: FormContract;
}

export interface FormContract {
  readonly valid: Readonly<Record<string, string>>;
  readonly userName: string;
  /** Fields that must be refused as wrong credentials. */
  readonly wrong: readonly Readonly<Record<string, string>>[];
  /** Name of the field with the secret. */
  readonly secretField: string;
}

/**
 * What the hub relies on in every authenticator, as tests for any runner:
 *
 *     for (const { name, run } of authenticatorContract({ plugin, options: {} })) test(name, run);
 */
export function authenticatorContract(contract: AuthenticatorContract): readonly ContractTest[] {
  return [
    ...pluginTests(contract),
    ...abilityTests(contract),
    ...(contract.form === undefined ? [] : formTests(contract, contract.form)),
  ];
}

async function create({
  plugin,
  options,
  host,
}: AuthenticatorContract): Promise<{ authenticator: Authenticator; host: TestHost }> {
  const testHost = await createTestHost(host);
  const authenticator = await plugin.create(plugin.optionsSchema.parse(options), testHost);
  await authenticator.open?.();
  return { authenticator, host: testHost };
}

function pluginTests({
  plugin,
  options,
  host: hostOptions,
}: AuthenticatorContract): ContractTest[] {
  return [
    {
      name: 'it is a plugin of the right shape',
      async run() {
        assert.equal(shapeProblem(plugin), undefined);
        assert.equal(plugin.kind, 'authenticator');
      },
    },
    {
      name: 'its schema accepts its own options and refuses a key it does not know',
      async run() {
        assert.ok(plugin.optionsSchema.safeParse(options).success);
        const misspelt = plugin.optionsSchema.safeParse({ ...options, no_such_option: true });
        assert.ok(!misspelt.success);
      },
    },
    {
      name: 'its options can be described to editors, the secret ones among them',
      async run() {
        const settings = { io: 'input', unrepresentable: 'any' } as const;
        const schema = z.toJSONSchema(plugin.optionsSchema, settings);
        const known = Object.keys(schema.properties ?? {});
        for (const option of plugin.secretOptions ?? []) {
          assert.ok(known.includes(option.split('.')[0] ?? ''), `there is no option ${option}`);
        }
      },
    },
    {
      name: 'it finds no problem in options that are right',
      async run() {
        const host = await createTestHost(hostOptions);
        const parsed = plugin.optionsSchema.parse(options);
        assert.deepEqual(plugin.findProblems?.(parsed, host) ?? [], []);
      },
    },
    {
      name: 'it can be created for trial, as hub check does it',
      async run() {
        const surroundings = await createTestHost(hostOptions);
        const prepared = {
          entry: { class: plugin.name, name: plugin.name, options: {} },
          plugin,
          file: plugin.name,
          options: plugin.optionsSchema.parse(options),
          surroundings,
        };
        assert.equal(await tryAuthenticator(prepared), undefined);
      },
    },
  ];
}

function abilityTests(contract: AuthenticatorContract): ContractTest[] {
  return [
    {
      name: 'its abilities fit the way it is offered',
      async run() {
        const { authenticator } = await create(contract);
        const { kind } = authenticator.login;
        assert.equal(authenticatorProblem(authenticator), undefined);
        assert.equal('authenticate' in authenticator, kind === 'form');
        assert.equal('identify' in authenticator, kind === 'request');
        assert.equal('beginLogin' in authenticator, kind === 'external');
        assert.equal('completeLogin' in authenticator, kind === 'external');
        await authenticator[Symbol.asyncDispose]?.();
      },
    },
    {
      name: 'its fields can be labelled, told apart and filled in by a password manager',
      async run() {
        const { authenticator } = await create(contract);
        if (authenticator.login.kind === 'form') {
          const { fields } = authenticator.login;
          assert.equal(new Set(fields.map((field) => field.name)).size, fields.length);
          for (const field of fields) {
            assert.notEqual(field.label, '');
            assert.notEqual(field.autocomplete, '');
          }
        }
        await authenticator[Symbol.asyncDispose]?.();
      },
    },
    {
      name: 'two of it can live side by side and be closed more than once',
      async run() {
        const first = await create(contract);
        const second = await create(contract);
        for (const { authenticator } of [first, second, first]) {
          await authenticator[Symbol.asyncDispose]?.();
        }
      },
    },
  ];
}

const oddities = [
  ['a megabyte', 'x'.repeat(1 << 20)],
  ['half a surrogate pair', '\uD800'],
  ['control characters', '\u0000\r\n'],
  ['a name of the prototype', '__proto__'],
  ['characters of a query language', '*)(uid=*))(|(uid=*'],
] as const;

function formTests(contract: AuthenticatorContract, form: FormContract): ContractTest[] {
  async function attempt(fields: Readonly<Record<string, string>>) {
    const { authenticator, host } = await create(contract);
    const result = await authenticate(authenticator, fields);
    await authenticator[Symbol.asyncDispose]?.();
    return { result, host };
  }
  const assertRefused = (result: AuthenticationResult) =>
    assert.partialDeepStrictEqual(result, { outcome: 'refused' });

  return [
    {
      name: 'the right fields name the user',
      async run() {
        const { result } = await attempt(form.valid);
        const user = { name: form.userName };
        assert.partialDeepStrictEqual(result, { outcome: 'authenticated', user });
      },
    },
    {
      name: 'wrong credentials are an answer, not an error',
      async run() {
        for (const fields of form.wrong) {
          const expected = { outcome: 'refused', reason: 'credentials' };
          assert.partialDeepStrictEqual((await attempt(fields)).result, expected);
        }
      },
    },
    {
      name: 'an empty form is refused',
      async run() {
        assertRefused((await attempt({})).result);
        const blank = Object.fromEntries(Object.keys(form.valid).map((field) => [field, '']));
        assertRefused((await attempt(blank)).result);
      },
    },
    ...oddities.map(([what, text]) => ({
      name: `${what} in every field is refused without an error`,
      async run() {
        const odd = Object.fromEntries(Object.keys(form.valid).map((field) => [field, text]));
        assertRefused((await attempt({ ...odd, [form.secretField]: `wrong ${text}` })).result);
      },
    })),
    {
      name: 'the secret shows neither in the result nor in the log',
      async run() {
        const secret = form.valid[form.secretField] ?? '';
        const wrongOnes = form.wrong.map((wrong) => ({ ...wrong, extra: secret }));
        const forms: Readonly<Record<string, string>>[] = [form.valid, ...wrongOnes];
        for (const fields of forms) {
          const { result, host } = await attempt(fields);
          const shown = `${JSON.stringify(result)}${host.logged.join('\n')}`;
          for (const value of new Set([secret, fields[form.secretField] ?? secret])) {
            if (value !== '') assert.ok(!shown.includes(value), `a secret is shown: ${shown}`);
          }
        }
      },
    },
    {
      name: 'many logins at once do not disturb one another',
      async run() {
        const { authenticator } = await create(contract);
        const [wrong = {}] = form.wrong;
        const forms = Array.from({ length: 20 }, (_, index) =>
          index % 2 === 0 ? form.valid : wrong,
        );
        const results = await Promise.all(
          forms.map((fields) => authenticate(authenticator, fields)),
        );
        assert.deepEqual(
          results.map(({ outcome }) => outcome),
          forms.map((fields) => (fields === form.valid ? 'authenticated' : 'refused')),
        );
        await authenticator[Symbol.asyncDispose]?.();
      },
    },
  ];
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
  assert.ok(isForm(authenticator), 'only a login by form takes fields');
  return authenticator.authenticate(new Map(Object.entries(fields)), request);
}
