import { env } from 'node:process';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { endpoints } from '../../src/entrances/api/endpoints.ts';
import type { OperationDeclaration } from '../../src/operations/operation.ts';
import { operations as apiOperations } from '../../src/operations/operations.ts';
import { usePostgres } from '../support/databases.ts';
import { serversInHub } from '../support/in-hub-servers.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';
import { createRandom, type Random } from './request-mutator.ts';

/**
 * Further runs by hand:
 * HUB_FUZZ_DATABASE=postgres HUB_FUZZ_SEED=7 HUB_FUZZ_CASES=100000 npx vitest run test/attacks/operations-fuzz.test.ts
 */
const seed = Number(env['HUB_FUZZ_SEED'] ?? 5);
const cases = Number(env['HUB_FUZZ_CASES'] ?? 3_000);
const cluster = env['HUB_FUZZ_DATABASE'] === 'postgres' ? usePostgres() : undefined;
const atOnce = 8;
/** Long for the slowest answer on a busy machine: a start. */
const patienceMs = 45_000;

/** Those of the API, and what else answers below its path: health, metrics and OAuth. */
const operations: readonly OperationDeclaration[] = [
  ...apiOperations,
  ...Object.values<OperationDeclaration>(endpoints),
];

const admin = 'admin-service-token';
/** Stands in everything of the victim that others may not see, and in no request of the test. */
const mark = 'a-mark-of-the-victim';

interface Caller {
  readonly name: string;
  readonly token: string | undefined;
}

let hub: TestHub;
/** Those who may do nothing to the victim. */
let foreignProcesses: readonly Caller[];
let administrators: readonly Caller[];
let ids: readonly string[];

async function post<Answer>(path: string, body: unknown, method = 'POST'): Promise<Answer> {
  const answer = await hub.api(path, admin, { method, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Answer;
}

beforeAll(async () => {
  hub = await createTestHub({
    Hub: {
      ...(cluster && { database_url: await cluster().createDatabase() }),
      ...serversInHub.Hub,
      allow_named_servers: true,
      active_server_limit: 2,
      services: [
        { name: 'plain', api_token: 'plain-service-token' },
        { name: 'edge', api_token: 'edge-service-token' },
      ],
      load_groups: [{ name: 'team', users: ['lead', 'member'] }],
      load_roles: [
        { name: 'gateways', scopes: ['gateway'], services: ['edge'] },
        { name: 'lead', scopes: ['admin:users!group=team', 'servers!group=team'], users: ['lead'] },
      ],
    },
    Spawner: serversInHub.Spawner,
  });
  await post('/users', { usernames: ['alice', 'bob', 'victim'] });
  await post('/users/ada', { admin: true });
  const info = { display_name: mark, email: `${mark}@example.org` };
  await post('/users/victim', { user_info: info }, 'PATCH');
  await post('/groups/secret-team', { users: ['victim'] });
  await post('/groups/secret-team/properties', { note: mark }, 'PUT');
  await post('/users/victim/servers/lab', { display_name: mark }, 'PUT');
  const tokenOf = (user: string, body: object = {}) =>
    post<{ id: string; token: string }>(`/users/${user}/tokens`, body);
  const ofVictim = await tokenOf('victim', { note: mark });
  await post('/share-codes/victim/lab', {});
  const spare = await tokenOf('alice');
  ids = [ofVictim.id, spare.id];
  const [own, none, server, lead, ada] = [
    await tokenOf('alice'),
    await tokenOf('bob', { scopes: ['(no_scope)'] }),
    await tokenOf('alice', {
      scopes: ['users:activity!user=alice', 'access:servers!server=alice/lab'],
    }),
    await tokenOf('lead'),
    await tokenOf('ada'),
  ];
  foreignProcesses = [
    { name: 'the role user', token: own.token },
    { name: 'no one', token: undefined },
    { name: 'a wrong token', token: 'x'.repeat(2_000) },
    { name: 'a token without scopes', token: none.token },
    { name: 'the role server', token: server.token },
    { name: 'the head of another group', token: lead.token },
    { name: 'a service without roles', token: 'plain-service-token' },
    { name: 'a gateway', token: 'edge-service-token' },
  ];
  administrators = [
    { name: 'a service with the role admin', token: admin },
    { name: 'the role admin', token: ada.token },
  ];
});
afterAll(() => hub[Symbol.asyncDispose]());

const fixedNames = ['alice', 'bob', 'victim', 'ada', 'lead', 'team', 'secret-team', 'lab', 'user'];
const oddTexts = [
  '',
  ' ',
  '.',
  '..',
  'a/b',
  '\0',
  '\u{d800}',
  '‮evil',
  'zoë',
  'x'.repeat(300),
  '__proto__',
  'constructor',
  'toString',
  '%',
  "'; drop table users; --",
  'inherit',
  'all',
  'self',
  'admin:users',
  'access:servers!server=victim/lab',
  'access:servers!user=',
  '!',
  '2026-02-30T25:61:61Z',
  '-1',
  '1e999',
  '9'.repeat(30),
];

/** Values that are nearly right, and seldom quite. */
function createValues(random: Random) {
  const name = () => random.pick(random.chance(0.8) ? [...fixedNames, 'plain'] : oddTexts);

  function junk(): unknown {
    return random.pick<() => unknown>([
      () => null,
      () => random.chance(0.5),
      () => random.pick([0, -1, 1.5, 2 ** 53, -(2 ** 63), 1e308, 86_400]),
      () => name(),
      () => random.pick(oddTexts),
      () => 'x'.repeat(random.below(200_000)),
      () => [],
      () => ({}),
      () => [name(), name(), null],
      () => Array.from({ length: random.below(3_000) }, (_, index) => `u${index}`),
      () => Object.fromEntries([[name(), junkLeaf()]]),
      () => JSON.parse('['.repeat(300) + ']'.repeat(300)),
      () => JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{"x":1}}}'),
    ])();
  }
  const junkLeaf = () => random.pick([null, true, 7, 'text', '\0', {}, []]);

  /** Something that a schema, as JSON Schema, describes. */
  function valid(schema: Record<string, unknown> | boolean, depth = 0): unknown {
    if (typeof schema === 'boolean' || depth > 6 || random.chance(0.06)) return junk();
    const choices = (schema['anyOf'] ?? schema['oneOf']) as Record<string, unknown>[] | undefined;
    if (choices !== undefined && choices.length > 0) return valid(random.pick(choices), depth + 1);
    if (Array.isArray(schema['enum'])) return random.pick(schema['enum']);
    if ('const' in schema) return schema['const'];
    switch (schema['type']) {
      case 'object': {
        const fields = Object.entries((schema['properties'] ?? {}) as object) as [
          string,
          Record<string, unknown>,
        ][];
        const required = (schema['required'] ?? []) as readonly string[];
        const kept = fields.filter(([field]) =>
          required.includes(field) ? random.chance(0.95) : random.chance(0.5),
        );
        const built = kept.map(([field, inner]) => [field, valid(inner, depth + 1)] as const);
        const extra = random.chance(0.1) ? [[random.pick(oddTexts), junk()] as const] : [];
        return Object.fromEntries([...built, ...extra]);
      }
      case 'array':
        if (Array.isArray(schema['prefixItems'])) {
          return schema['prefixItems'].map((part: Record<string, unknown>) =>
            valid(part, depth + 1),
          );
        }
        return Array.from({ length: random.below(4) }, () =>
          valid((schema['items'] ?? {}) as Record<string, unknown>, depth + 1),
        );
      case 'integer':
      case 'number':
        return random.pick([0, 1, 2, 60, 4711, 86_400, -1]);
      case 'boolean':
        return random.chance(0.5);
      case 'string':
        return random.pick([name(), name(), random.pick(oddTexts), '2026-01-31T12:00:00Z']);
      case 'null':
        return null;
      default:
        return junk();
    }
  }
  return { name, junk, valid };
}

const schemas = new Map<string, Record<string, unknown>>();

function schemaOf({ id, body }: OperationDeclaration): Record<string, unknown> | undefined {
  if (body === undefined) return undefined;
  const known = schemas.get(id);
  if (known !== undefined) return known;
  const schema = z.toJSONSchema(body, { io: 'input', unrepresentable: 'any', reused: 'inline' });
  schemas.set(id, schema as Record<string, unknown>);
  return schema as Record<string, unknown>;
}

interface Call {
  readonly id: string;
  readonly caller: Caller;
  readonly path: string;
  readonly init: RequestInit;
}

const isForm = ({ bodyMediaType }: OperationDeclaration) => bodyMediaType !== undefined;

/** Objects may have a member called toString. */
function textOf(value: unknown): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function formOf(value: unknown): string {
  const members = Object.entries(Object(value)).map(([key, each]): [string, string] => [
    key,
    textOf(each),
  ]);
  return new URLSearchParams(members.slice(0, 100)).toString();
}

function createCalls(random: Random) {
  const values = createValues(random);

  function pathOf({ path, aliases = [] }: OperationDeclaration): string {
    return random
      .pick([path, path, path, ...aliases])
      .replaceAll(/\{(\w+)\}/g, (_, part: string) => {
        if (random.chance(0.12)) return encodeURIComponent(random.pick(oddTexts).toWellFormed());
        if (part === 'id') return random.pick([...ids, 'no-such-id']);
        if (part === 'server') return random.pick(['lab', 'gpu', 'user']);
        if (part === 'group') return random.pick(['team', 'secret-team', 'new-team']);
        if (part === 'service') return random.pick(['plain', 'edge', 'admin-service', 'none']);
        if (part === 'role') return random.pick(['user', 'admin', 'lead', 'new-role']);
        return random.pick([
          'alice',
          'alice',
          'alice',
          'victim',
          'bob',
          'lead',
          'member',
          'ada',
          'no-one',
        ]);
      });
  }

  function queryOf({ query, isPaged }: OperationDeclaration): string {
    const known = [
      ...Object.keys(query?.shape ?? {}),
      ...(isPaged === true ? ['offset', 'limit'] : []),
    ];
    const parameters = new URLSearchParams();
    for (const key of known) {
      while (random.chance(0.3)) parameters.append(key, textOf(values.junk()).slice(0, 500));
      if (random.chance(0.3)) parameters.append(key, values.name());
    }
    if (random.chance(0.05)) parameters.append(random.pick(oddTexts), 'x');
    return parameters.size === 0 ? '' : `?${parameters}`;
  }

  function bodyOf(operation: OperationDeclaration): string | undefined {
    const schema = schemaOf(operation);
    if (schema === undefined) return random.chance(0.1) ? '{"unasked":true}' : undefined;
    if (random.chance(0.05)) return undefined;
    if (random.chance(0.05))
      return random.pick(['', '{', '[]', 'null', '"x"', '{"a":1}}', '\0', '1e999']);
    const value = random.chance(0.1) ? values.junk() : values.valid(schema);
    return isForm(operation) ? formOf(value) : JSON.stringify(value);
  }

  return (operation: OperationDeclaration, callers: readonly Caller[]): Call => {
    const { id, method } = operation;
    const body = method === 'GET' ? undefined : bodyOf(operation);
    const proper = operation.bodyMediaType ?? 'application/json';
    const type = random.pick([proper, proper, 'text/plain', '']);
    return {
      id,
      // The first of them may do more than the others.
      caller: random.chance(0.4) ? (callers[0] as Caller) : random.pick(callers),
      path: pathOf(operation) + queryOf(operation),
      init: {
        method,
        ...(body !== undefined && { body }),
        headers: type === '' ? {} : { 'content-type': type },
      },
    };
  };
}

/** Sends a call and reads its answer; of a stream what comes first. */
async function send({ path, caller, init }: Call): Promise<{ status: number; text: string }> {
  const signal = AbortSignal.timeout(patienceMs);
  const answer = await hub.api(path, caller.token, { ...init, signal });
  const isStream = answer.headers.get('content-type')?.startsWith('text/event-stream') === true;
  if (!isStream) return { status: answer.status, text: await answer.text() };
  const reader = answer.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return { status: answer.status, text: new TextDecoder().decode(first?.value) };
}

function shown({ id, caller, path, init }: Call): string {
  return `seed ${seed}, ${id} by ${caller.name}: ${init.method} ${path} ${String(init.body).slice(0, 2_000)}`;
}

/** Calls every operation in turn, `count` times in all, and hands each answer to `check`. */
async function fuzz(
  callers: readonly Caller[],
  count: number,
  check: (call: Call, answer: { status: number; text: string }) => void,
): Promise<Set<string>> {
  const createCall = createCalls(createRandom(seed));
  const succeeded = new Set<string>();
  for (let index = 0; index < count; index += atOnce) {
    const calls = Array.from({ length: atOnce }, (_, offset) =>
      createCall(operations[(index + offset) % operations.length] as OperationDeclaration, callers),
    );
    await Promise.all(
      calls.map(async (call) => {
        const answer = await send(call).catch((error: unknown) => {
          throw new Error(shown(call), { cause: error });
        });
        if (answer.status < 300) succeeded.add(call.id);
        check(call, answer);
      }),
    );
  }
  return succeeded;
}

/** What went wrong inside; an answer that says it of something outside is no such thing. */
function expectNoFailure(call: Call, { status, text }: { status: number; text: string }): void {
  expect(status, `${shown(call)}\n${text}`).not.toBe(500);
}

async function victim(): Promise<unknown> {
  const paths = [
    '/users/victim?include_stopped_servers=1',
    '/users/victim/tokens',
    '/groups/secret-team',
    '/share-codes/victim/lab',
    '/shares/victim/lab',
    '/roles',
  ];
  const answers = await Promise.all(paths.map(async (path) => (await hub.api(path, admin)).text()));
  return answers.map((text) => text.replaceAll(/"last_\w+":("[^"]*"|null)/g, ''));
}

/** A gateway tells services who visits them, and so learns what is public of any user who might. */
function isTaskOfGateways({ id, caller, init }: Call): boolean {
  const isInfo = id === 'askForGateway' && String(init.body).includes('infoOfUser');
  return isInfo && caller.name === 'a gateway';
}

test('whatever strangers send, nothing fails, nothing hangs, and no one learns or changes what is not theirs', {
  timeout: 900_000 + cases * 20,
}, async () => {
  const before = await victim();
  const succeeded = await fuzz(foreignProcesses, Math.ceil(cases * 0.7), (call, answer) => {
    expectNoFailure(call, answer);
    if (!isTaskOfGateways(call)) expect(answer.text, shown(call)).not.toContain(mark);
  });
  expect(await victim()).toEqual(before);
  // The calls are near enough to right ones: of those that strangers may make for themselves, many succeed.
  const ofTheirOwn = operations.filter(
    ({ scopes, target }) => !Array.isArray(scopes) || target === 'user' || target === 'server',
  );
  const reached = ofTheirOwn.filter(({ id }) => succeeded.has(id));
  expect(reached.length).toBeGreaterThan(ofTheirOwn.length / 3);
});

test('whatever administrators send, nothing fails and nothing hangs', {
  timeout: 900_000 + cases * 20,
}, async () => {
  const succeeded = await fuzz(administrators, Math.ceil(cases * 0.3), expectNoFailure);
  expect(succeeded.size).toBeGreaterThan(operations.length / 4);
  expect((await hub.api('/users', admin)).status).toBe(200);
});
