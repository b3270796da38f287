import { env } from 'node:process';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import fc, { type Arbitrary } from 'fast-check';
import { expect, test } from 'vitest';
import type { OpenApiDocument } from '../../src/entrances/api/openapi.ts';
import { createWorld, type World } from '../attacks/api-world.ts';
import { createPasswordHub } from '../support/password-hub.ts';
import { runs } from '../support/properties.ts';
import { type JsonSchema, lookUp, valuesOf } from '../support/schema-values.ts';
import type { TestHub } from '../support/test-hub.ts';
import { trivialApp } from '../support/trivial-app.ts';

// A reader who knows nothing but the description that the hub serves: calls every operation with what its schemas
// allow and with what they do not, as several callers, and compares each answer with the schema of its status.
//
// HUB_FOREIGN_REQUESTS=50000 HUB_PROPERTY_SEED=7 npx vitest run --project foreign test/foreign/openapi.test.ts
const requests = Number(env['HUB_FOREIGN_REQUESTS'] ?? 600);
const atOnce = 8;

interface Parameter {
  readonly in: 'path' | 'query' | 'header';
  readonly name: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
}
type Content = Readonly<Record<string, { readonly schema: JsonSchema }>>;
interface Response {
  readonly $ref?: string;
  readonly content?: Content;
}
interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
}

/** Stand for what a world has, since that is made later than the inputs. */
const placeholders = {
  name: ['<owner>', '<owner>', '<other>', '<free>'],
  owner: ['<other>', '<owner>'],
  server: ['<server>', '<server>', 'new-server'],
  group: ['<team>', '<otherTeam>', '<free>'],
  role: ['<role>', 'admin', '<free>'],
  service: ['<service>', 'plain', 'edge', '<free>'],
  id: ['<tokenId>', '<sessionId>', 'no-such-id'],
} as const;
const names = [...new Set(Object.values(placeholders).flat())];

function filled(text: string, world: World): string {
  const values: Readonly<Record<string, string>> = {
    ...{ server: world.server, team: world.team, otherTeam: world.otherTeam, role: world.role },
    ...{ owner: world.owner.name, other: world.other.name, free: world.freeName },
    ...{ tokenId: world.owner.tokenId, sessionId: world.owner.sessionId, service: world.service },
  };
  return text.replaceAll(/<(\w+)>/g, (all, key: string) => values[key] ?? all);
}

interface Input {
  readonly caller: 'admin' | 'ada' | 'owner' | 'other' | 'gateway' | 'nobody' | 'revoked';
  readonly path: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly isEnvelope: boolean;
}

function inputsOf(operation: Operation, document: object): Arbitrary<Input> {
  const values = (schema: JsonSchema) => valuesOf(schema, { document, junkShare: 4, names });
  const parameters = (place: Parameter['in']) =>
    (operation.parameters ?? []).filter((each) => each.in === place);
  const record = (place: Parameter['in'], of: (parameter: Parameter) => Arbitrary<unknown>) =>
    fc.record(Object.fromEntries(parameters(place).map((each) => [each.name, of(each)])), {
      requiredKeys: parameters(place).flatMap(({ name, required }) => (required ? [name] : [])),
    });
  const odd = fc.constantFrom('..', '%', 'a/b', 'zo\u00eb', 'x'.repeat(300), '\0', '__proto__');
  const ofPath = ({ name }: Parameter) => {
    const known: readonly string[] = placeholders[name as keyof typeof placeholders] ?? names;
    return fc.oneof({ arbitrary: fc.constantFrom(...known), weight: 9 }, odd);
  };
  const [content] = Object.values(operation.requestBody?.content ?? {});
  const callers = ['admin', 'admin', 'ada', 'owner', 'other', 'gateway', 'nobody', 'revoked'];
  return fc.record({
    caller: fc.constantFrom(...callers),
    path: record('path', ofPath),
    query: record('query', ({ schema }) => values(schema)),
    headers: record('header', () => fc.constantFrom('"x"', '*', '')),
    body: content === undefined ? fc.constant(undefined) : values(content.schema),
    isEnvelope: fc.boolean(),
  }) as Arbitrary<Input>;
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value));

function formOf(value: unknown): string {
  const isObject = typeof value === 'object' && value !== null;
  const pairs = isObject ? Object.entries(value) : [];
  return new URLSearchParams(
    pairs.map(([key, each]): [string, string] => [key, (textOf(each) ?? '').toWellFormed()]),
  ).toString();
}

function requestOf(
  { path, method, operation }: Endpoint,
  input: Input,
  world: World,
): { readonly path: string; readonly init: RequestInit & { headers: Record<string, string> } } {
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(filled(input.path[name] ?? '', world)),
  );
  const query = formOf(input.query);
  const [type] = Object.keys(operation.requestBody?.content ?? {});
  const isForm = type === 'application/x-www-form-urlencoded';
  const body = isForm ? formOf(input.body) : JSON.stringify(input.body);
  const envelope = 'application/jupyterhub-pagination+json';
  return {
    path: `${address.slice('/hub/api'.length)}${query === '' ? '' : `?${filled(query, world)}`}`,
    init: {
      method,
      redirect: 'manual',
      headers: {
        ...input.headers,
        ...(type === undefined ? {} : { 'content-type': type }),
        ...(input.isEnvelope ? { accept: `${envelope}, */*` } : {}),
      },
      ...(body === undefined || input.body === undefined ? {} : { body: filled(body, world) }),
    },
  };
}

interface Endpoint {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

/** What an answer is by its description: `undefined` when it fits. */
function createCheck(document: OpenApiDocument) {
  const ajv = new Ajv2020({
    strict: false,
    formats: {
      uri: (text) => URL.canParse(text),
      date: /^\d{4}-\d\d-\d\d$/,
      'date-time': /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/,
    },
  });
  ajv.addSchema(document, 'hub');
  const validators = new Map<object, ValidateFunction>();
  const validatorOf = (schema: JsonSchema): ValidateFunction => {
    const known = validators.get(schema);
    if (known !== undefined) return known;
    const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"hub#/')) as JsonSchema;
    const made = ajv.compile(absolute);
    validators.set(schema, made);
    return made;
  };

  return ({ responses }: Operation, status: number, type: string, text: string) => {
    const declared = responses[String(status)] ?? responses['default'];
    if (declared === undefined) return `the status ${status} is not described`;
    const { $ref } = declared;
    const { content = {} } = $ref === undefined ? declared : (lookUp(document, $ref) as Response);
    if (text === '' && Object.keys(content).length === 0) return undefined;
    const schema = content[type]?.schema;
    if (schema === undefined) return `the type ${type} of ${status} is not described`;
    if (!/json|event-stream/.test(type)) return undefined;
    const events = [...text.matchAll(/^data: ?(.*)\n\n/gm)].map(([, data = '']) => data);
    for (const each of type === 'text/event-stream' ? events : [text]) {
      const validate = validatorOf(schema);
      if (!validate(JSON.parse(each))) return ajv.errorsText(validate.errors);
    }
    return undefined;
  };
}

async function readAnswer(answer: globalThis.Response): Promise<{ type: string; text: string }> {
  const [type = ''] = (answer.headers.get('content-type') ?? '').split(';');
  if (type !== 'text/event-stream') return { type, text: await answer.text() };
  const reader = answer.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return { type, text: new TextDecoder().decode(first?.value) };
}

/** Whether the parameters lead to the operation itself, and to no other address. */
const leadsThere = ({ path }: Input) =>
  Object.values(path).every((value) => !/^\.{0,2}$|[/\0]|^%$/.test(value));

test('every operation answers as the description says, whatever it is sent', {
  timeout: 60_000 + requests * 100,
}, async () => {
  await using hub: TestHub = await createPasswordHub(['ada'], {
    Hub: {
      allow_named_servers: true,
      // Each world makes some in the name of one administrator.
      api_token_limit_per_user: 0,
      active_server_limit: 2,
      cleanup_servers: true,
      services: [
        { name: 'plain', api_token: 'plain-service-token' },
        { name: 'edge', api_token: 'edge-service-token' },
        { name: 'wiki', api_token: 'wiki-service-token' },
      ],
      load_roles: [{ name: 'gateways', scopes: ['gateway'], services: ['edge'] }],
    },
    Spawner: { cmd: trivialApp(), access: 'gateway' },
  });
  const document = (await (await hub.api('/openapi.json', undefined)).json()) as OpenApiDocument;
  const check = createCheck(document);
  const endpoints = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]): Endpoint => ({
        path,
        method: method.toUpperCase(),
        operation: operation as Operation,
      }),
    ),
  );
  const rounds = Math.ceil(requests / endpoints.length);
  const { seed } = runs(1);
  const inputs = endpoints.map((endpoint) =>
    fc.sample(inputsOf(endpoint.operation, document), { seed, numRuns: rounds }),
  );

  const problems = new Map<string, string>();
  const statuses = new Map<number, number>();
  const succeeded = new Set<string>();
  for (let round = 0; round < rounds; round += 1) {
    const newWorld = () =>
      createWorld(hub, {
        ...{ servers: 'stopped', isNamed: true, hasLogins: round % 20 === 0, hasFailures: false },
        ...{ hasInvitation: false, hasRole: true, hasService: true, hasShares: true },
      });
    // An idle connection may end in the moment in which it is used again.
    const world = await newWorld().catch(newWorld);
    const tokens: Readonly<Record<Input['caller'], string | undefined>> = {
      admin: world.adminServiceToken,
      ada: world.adminToken,
      owner: world.owner.token,
      other: world.other.token,
      gateway: world.gatewayToken,
      nobody: undefined,
      revoked: world.revokedToken,
    };
    const turns = endpoints.map((endpoint, index) => ({ endpoint, input: inputs[index]?.[round] }));
    for (let at = 0; at < turns.length; at += atOnce) {
      await Promise.all(
        turns.slice(at, at + atOnce).map(async ({ endpoint, input }) => {
          if (input === undefined) return;
          const { path, init } = requestOf(endpoint, input, world);
          const { operationId } = endpoint.operation;
          const ask = () => hub.api(path, tokens[input.caller], init);
          const answer = await ask().catch(ask);
          const { type, text } = await readAnswer(answer);
          const { status } = answer;
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          if (status < 300) succeeded.add(operationId);
          const problem =
            // Nothing starts during maintenance, and that is what the answer says.
            status >= 500 && !(status === 503 && text.includes('during maintenance'))
              ? 'it failed'
              : leadsThere(input)
                ? check(endpoint.operation, status, type, text)
                : undefined;
          if (problem === undefined) return;
          const shown = `${init.method} ${path} by ${input.caller} ${init.body ?? ''}`;
          problems.set(
            `${operationId} ${status}: ${problem}`,
            `${shown.slice(0, 1_000)}\n${text.slice(0, 500)}`,
          );
        }),
      );
    }
    // A hub takes so many of them and no more.
    await hub.api(`/services/${world.service}`, world.adminServiceToken, { method: 'DELETE' });
  }
  console.log(`${rounds * endpoints.length} requests: ${JSON.stringify([...statuses].sort())}`);
  expect(Object.fromEntries(problems)).toEqual({});
  // Near enough to what is meant: many succeed.
  expect(succeeded.size).toBeGreaterThan(endpoints.length / 3);
});
