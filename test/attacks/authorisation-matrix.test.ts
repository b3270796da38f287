import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { z } from 'zod';
import { endpoints } from '../../src/entrances/api/endpoints.ts';
import { envelopeOf } from '../../src/entrances/api/paging.ts';
import type { OperationDeclaration } from '../../src/operations/operation.ts';
import { operations } from '../../src/operations/operations.ts';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { serversInHub } from '../support/in-hub-servers.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { adminToken, tokenOf } from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';
import { type Caller, callersOf, scopeOf, verdictOf } from './api-callers.ts';
import {
  createWorld,
  snapshot,
  type World,
  type WorldOptions,
  type WorldUser,
} from './api-world.ts';

/** Every operation, and what else is checked by scopes. */
const declarations: readonly OperationDeclaration[] = [
  ...operations,
  endpoints.health,
  endpoints.metrics,
];

/** A call that does what the operation is for: its query and its body, where it needs one. */
const inputs: Readonly<Record<string, (world: World) => { query?: string; body?: unknown }>> = {
  putAnnouncement: () => ({ body: { text: 'Hello.' } }),
  createUsers: ({ freeName }) => ({ body: { usernames: [freeName] } }),
  undoUserImport: ({ freeName }) => ({ body: { usernames: [freeName] } }),
  importUsers: ({ freeName }) => ({ body: { users: [{ name: freeName }] } }),
  changeUser: ({ freeName }) => ({ body: { name: freeName } }),
  reportActivity: () => ({ body: { last_activity: new Date().toISOString() } }),
  createToken: () => ({ body: { scopes: ['(no_scope)'] } }),
  liftLockout: ({ owner }) => ({ query: `?kind=user&subject=${owner.name}` }),
  setBudget: () => ({ body: { user: '*', period: 'day', cpu_hours: 1000 } }),
  grantBudget: () => ({ body: { cpu_hours: 1, reason: 'More work.' } }),
  shareServer: ({ other }) => ({ body: { user: other.name } }),
  revokeShare: ({ other }) => ({ body: { user: other.name } }),
  createGroups: ({ freeName }) => ({ body: { groups: [freeName] } }),
  addGroupMembers: ({ other }) => ({ body: { users: [other.name] } }),
  removeGroupMembers: ({ owner }) => ({ body: { users: [owner.name] } }),
  setGroupProperties: () => ({ body: { colour: 'red' } }),
  createService: () => ({ body: {} }),
  putService: () => ({ body: {} }),
  registerClient: () => ({ body: { redirect_uris: ['https://app.example.org/callback'] } }),
  updateClient: ({ service }) => ({
    body: { client_id: `service-${service}`, redirect_uris: ['https://app.example.org/callback'] },
  }),
  changeService: () => ({ body: { display: false } }),
  createRole: () => ({ body: { scopes: ['(no_scope)'] } }),
  changeRole: () => ({ body: { scopes: [] } }),
  assignRole: ({ other }) => ({ body: { users: [other.name] } }),
  takeRoleAway: ({ owner }) => ({ body: { users: [owner.name] } }),
  tellAddressOfDefaultServer: () => ({ body: { port: 4711 } }),
  tellAddressOfNamedServer: () => ({ body: { port: 4711 } }),
  changeNamedServer: () => ({ body: { display_name: 'A name' } }),
  chooseStartAtLogin: () => ({ body: { enabled: true } }),
  replaceProxy: () => ({ body: { api_url: 'http://127.0.0.1:9' } }),
  followGatewayFeed: () => ({ query: '?name=edge&version=1&nonce=once' }),
  askForGateway: ({ owner }) => ({
    body: { name: 'bearerOfToken', question: { token: owner.token } },
  }),
};

/** Operations that make what their path names. */
const creating: Readonly<Record<string, 'name' | 'group' | 'role' | 'service'>> = {
  createUser: 'name',
  createGroup: 'group',
  createRole: 'role',
  createService: 'service',
  putService: 'service',
};

/** What the servers in a path must be for an operation to do its work; running unless given. */
const serversFor: Readonly<Record<string, WorldOptions['servers']>> = {
  createNamedServer: 'none',
  listHomes: 'stopped',
  startDefaultServer: 'stopped',
  startNamedServer: 'stopped',
  changeNamedServer: 'stopped',
  shareServer: 'stopped',
  revokeShare: 'stopped',
  revokeSharesOfServer: 'stopped',
  listSharesOfServer: 'stopped',
  createShareCode: 'stopped',
  deleteShareCodes: 'stopped',
  listShareCodesOfServer: 'stopped',
};

let hub: TestHub;
let browser: FakeBrowser;
beforeAll(async () => {
  hub = await createPasswordHub(['ada'], {
    Hub: {
      ...serversInHub.Hub,
      allow_named_servers: true,
      // Each world makes and revokes some in the name of one administrator.
      api_token_limit_per_user: 0,
      services: [
        { name: 'wiki', api_token: 'wiki-service-token' },
        { name: 'plain', api_token: 'plain-service-token' },
        { name: 'edge', api_token: 'edge-service-token' },
      ],
      load_roles: [{ name: 'gateways', scopes: ['gateway'], services: ['edge'] }],
    },
    Spawner: { ...serversInHub.Spawner, start_at_login: 'choice' },
  });
  browser = await hub.logIn('ada', testPassword);
});
afterAll(() => hub[Symbol.asyncDispose]());

function worldOptionsOf({ path, id }: OperationDeclaration): WorldOptions {
  const hasShares = path.includes('/shared');
  return {
    hasShares,
    servers: hasShares
      ? 'stopped'
      : (serversFor[id] ?? (path.includes('/server') ? 'running' : 'none')),
    isNamed: path.includes('{server}'),
    hasLogins: path.includes('/sessions'),
    hasFailures: path === '/lockouts',
    hasInvitation: id === 'revokeInvitation',
    hasRole: path.includes('{role}'),
    hasUse: path === '/usage',
    hasKey: path.includes('{key}'),
    hasBudget: path.includes('{budget}'),
    hasService: id === 'changeService' || id === 'deleteService' || path.includes('/register/'),
  };
}

/** A world of its own for a call that changes it; with what the call or its caller names, if the caller is known. */
function worldFor(declaration: OperationDeclaration, caller?: Caller): Promise<World> {
  const options = worldOptionsOf(declaration);
  const { path, id } = declaration;
  const hasTokens =
    (caller?.credentials.kind ?? 'token') === 'token' ||
    path.includes('{id}') ||
    id === 'askForGateway';
  const isOfTeam = caller?.rights?.some(({ filter }) => filter?.kind === 'group') ?? true;
  const hasTeams = isOfTeam || options.hasShares || path.includes('{group}');
  return createWorld(hub, { ...options, hasTokens, hasTeams });
}

const unchangedWorlds = new Map<string, Promise<World>>();

/** A world for calls that change nothing, the same for all that need the same things. */
function unchangedWorldFor(declaration: OperationDeclaration): Promise<World> {
  const options = worldOptionsOf(declaration);
  const key = JSON.stringify(options);
  const world = unchangedWorlds.get(key) ?? createWorld(hub, options);
  unchangedWorlds.set(key, world);
  return world;
}

/** Fails when something in a world is not what it was; then the next test gets another one. */
async function expectUnchanged(world: World, before: unknown): Promise<void> {
  const after = await snapshot(hub, world);
  if (!isDeepStrictEqual(after, before)) unchangedWorlds.clear();
  expect(after).toEqual(before);
}

/** The path of a call on something of the owner; `idOf` is whose token or login it names. */
function pathOf({ id, path }: OperationDeclaration, world: World, idOf: WorldUser): string {
  const values = {
    name: world.owner.name,
    group: world.team,
    server: world.server,
    owner: world.other.name,
    service: world.service,
    role: world.role,
    entry: '1',
    key: world.key,
    budget: world.budget,
    id: path.includes('/sessions/') ? idOf.sessionId : idOf.tokenId,
    token: idOf.token,
    cookie: 'hub-login',
    value: idOf.sessionId,
  };
  const made = creating[id];
  if (made !== undefined) values[made] = world.freeName;
  return path.replaceAll(/\{(\w+)\}/g, (_, name: keyof typeof values) => values[name]);
}

async function call(
  declaration: OperationDeclaration,
  caller: Caller,
  world: World,
  idOf = world.owner,
): Promise<{ status: number; type: string; text: string }> {
  const { query = '', body } = inputs[declaration.id]?.(world) ?? {};
  const path = pathOf(declaration, world, idOf) + query;
  const init = {
    method: declaration.method,
    ...(body === undefined ? undefined : { body: JSON.stringify(body) }),
  };
  if (caller.credentials.kind === 'cookie') {
    const answer = await browser.request(`${hub.url}hub/api${path}`, {
      ...init,
      headers: {
        accept: 'application/json',
        'content-type': 'application/json',
        'content-length': String(init.body?.length ?? 0),
      },
    });
    const type = answer.headers['content-type'] ?? '';
    return { status: answer.status, type, text: answer.body };
  }
  const answer = await hub.api(path, await tokenFor(caller), init);
  const type = answer.headers.get('content-type') ?? '';
  const isEndless = declaration.id === 'followGatewayFeed' && answer.status === 200;
  const text = isEndless ? await firstEvent(answer) : await answer.text();
  return { status: answer.status, type, text };
}

/** What an event stream begins with; its rest is left. */
async function firstEvent({ body }: Response): Promise<string> {
  let text = '';
  for await (const chunk of body ?? []) {
    text += Buffer.from(chunk).toString();
    if (text.includes('\n\n')) break;
  }
  return text.split('\n\n', 1)[0] ?? '';
}

/** Tokens of the administrator by their scopes; none of the operations names one of them. */
const scopedTokens = new Map<string, Promise<string>>();

async function tokenFor({ credentials, rights = [] }: Caller): Promise<string | undefined> {
  if (credentials.kind === 'token') return credentials.token;
  if (credentials.kind !== 'scopes') return undefined;
  const scopes = rights.length === 0 ? ['(no_scope)'] : rights.map(scopeOf);
  const key = scopes.join(' ');
  const token = scopedTokens.get(key) ?? tokenOf(hub, 'ada', scopes);
  scopedTokens.set(key, token);
  return token;
}

/** Checks that an answer is one of those declared, with no more and no less in it. */
function expectDeclared(
  declaration: OperationDeclaration,
  { status, type, text }: Awaited<ReturnType<typeof call>>,
): void {
  const answer = declaration.answers[status];
  expect(answer, `${status} ${text}`).toBeDefined();
  if (answer?.schema === undefined) {
    expect(text).toBe('');
    return;
  }
  expect(type).toContain(answer.mediaType ?? 'application/json');
  if (type.startsWith('text/event-stream')) {
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, event = '']) => JSON.parse(event));
    expect(events.length).toBeGreaterThan(0);
    for (const event of events) expectShape(answer.schema, event);
  } else if (declaration.isPaged === 'in_envelope') {
    expectShape(envelopeOf(answer.schema), JSON.parse(text));
  } else expectShape(answer.schema, answer.mediaType === undefined ? JSON.parse(text) : text);
}

function expectShape(schema: z.ZodType, value: unknown): void {
  // What the schema does not know is missing from what it returns.
  expect(schema.parse(value)).toEqual(value);
}

describe('each operation', () => {
  test.for(declarations)('$method $path refuses all who may not', async (declaration) => {
    const world = await unchangedWorldFor(declaration);
    const before = await snapshot(hub, world);
    for (const caller of callersOf(declaration, world)) {
      const verdict = verdictOf(declaration, caller, world);
      if (verdict === 'allowed') continue;
      const { status, text } = await call(declaration, caller, world);
      expect(status, `${caller.name}: ${text}`).toBe(verdict);
    }
    await expectUnchanged(world, before);
  });

  const forCallers = declarations.filter(({ needsServerToken }) => needsServerToken !== true);
  test.for(forCallers)('$method $path answers all who may', async (declaration) => {
    const changes = declaration.method !== 'GET';
    const first = await (changes ? worldFor : unchangedWorldFor)(declaration);
    const allowed = [...callersOf(declaration, first).entries()].filter(
      ([, caller]) => verdictOf(declaration, caller, first) === 'allowed',
    );
    expect(allowed).not.toEqual([]);
    for (const [turn, [index, counterpart]] of allowed.entries()) {
      // What one caller has deleted or made is no matter for the next one.
      const world = changes && turn > 0 ? await worldFor(declaration, counterpart) : first;
      const caller = callersOf(declaration, world)[index] as Caller;
      expectDeclared(declaration, await call(declaration, caller, world));
    }
  });

  const withIds = declarations.filter(({ path }) => path.includes('{id}'));
  test.for(withIds)("$method $path takes no id of another user's", async (declaration) => {
    const world = await worldFor(declaration);
    const before = await snapshot(hub, world);
    const callers = callersOf(declaration, world);
    for (const caller of callers) {
      if (verdictOf(declaration, caller, world) !== 'allowed') continue;
      const { status, text } = await call(declaration, caller, world, world.other);
      expect(status, `${caller.name}: ${text}`).toBe(404);
    }
    expect(await snapshot(hub, world)).toEqual(before);
    // The ids were right: where they belong, they are taken.
    const path = pathOf(declaration, world, world.other).replace(
      world.owner.name,
      world.other.name,
    );
    const answer = await hub.api(path, adminToken, { method: declaration.method });
    expect(declaration.answers).toHaveProperty(String(answer.status));
  });

  const lists = declarations.filter(({ target }) => target?.endsWith('s') === true);
  test.for(lists)('$method $path shows a filter only its own rows', async (declaration) => {
    const world = await unchangedWorldFor(declaration);
    const namesOf: Readonly<Record<string, readonly string[]>> = {
      [`user=${world.owner.name}`]: [world.owner.name],
      [`user=${world.other.name}`]: [world.other.name],
      [`group=${world.team}`]: declaration.target === 'groups' ? [world.team] : [world.owner.name],
      [`group=${world.otherTeam}`]:
        declaration.target === 'groups' ? [world.otherTeam] : [world.other.name],
      [`service=${world.service}`]: [world.service],
      'service=another': [],
    };
    let count = 0;
    for (const caller of callersOf(declaration, world)) {
      const [right] = caller.rights ?? [];
      if (caller.credentials.kind !== 'scopes' || right?.filter === undefined) continue;
      if (verdictOf(declaration, caller, world) !== 'allowed') continue;
      const rows: unknown = JSON.parse((await call(declaration, caller, world)).text);
      const names = Array.isArray(rows)
        ? rows.map(({ name }: { name: string }) => name)
        : Object.keys(rows as object);
      const { kind, value } = right.filter;
      expect(names, caller.name).toEqual(namesOf[`${kind}=${value}`]);
      count += 1;
    }
    expect(count).toBeGreaterThan(1);
  });
});
