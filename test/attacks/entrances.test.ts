import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listCommands } from '../../scripts/reference/command-line-page.ts';
import { createInstanceStore } from '../../src/cluster/instances/instance-store.ts';
import { declarations } from '../../src/entrances/api/openapi.ts';
import { loadCheckedConfig } from '../../src/entrances/cli/checked-config.ts';
import { createHubChannel } from '../../src/entrances/cli/hub-channel.ts';
import { operationsOf } from '../../src/entrances/cli/performing.ts';
import type { Entrance } from '../../src/entrances/pages/forms/binding.ts';
import { selfScopes } from '../../src/identity/rbac/scope-definitions.ts';
import {
  auditActionsOf,
  type OperationDeclaration,
  parameterNames,
} from '../../src/operations/operation.ts';
import { allOperations, operationOf } from '../../src/operations/operations.ts';
import { commandChannelOperation } from '../../src/operations/perform-command.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import { type BrowserAnswer, FakeBrowser } from '../support/fake-browser.ts';
import { ageLogins, withStolenCookies } from '../support/login-age.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { runCommand } from '../support/run-command.ts';
import { adminToken } from '../support/server-hub.ts';
import type { TestHub } from '../support/test-hub.ts';
import { callersOf, type Right, scopeOf, type Verdict, verdictOf } from './api-callers.ts';
import { createWorld, snapshot, type World } from './api-world.ts';

// Every page and form performs an operation: who may is decided by its declaration alone, and this is asked of each
// entrance with every kind of rights.
const visitorName = 'visitor';
const visitorRole = 'visitors';

const hub: TestHub = await createPasswordHub(['ada', visitorName], {
  Hub: {
    allow_named_servers: true,
    api_token_limit_per_user: 0,
    services: [{ name: 'wiki', api_token: 'wiki-service-token' }],
  },
});
const entrances = hub.hub.entrances.map((entrance) => ({
  ...entrance,
  title: `${entrance.kind} ${entrance.path} (${entrance.operation.id})`,
}));
const forms = entrances.filter(({ kind }) => kind === 'form');
/** Forms that perform an operation for each of many users. */
const forMany = forms.filter(({ fields }) => fields !== undefined);

const commands = listCommands().flatMap(({ name, command }) =>
  operationsOf(command).map((id) => ({
    name,
    arguments: command.registeredArguments.map((each) => each.name()),
    needed: command.options.flatMap(({ mandatory, long }) => (mandatory ? [long ?? '', 'x'] : [])),
    operation: operationOf(id),
    title: `command ${name} (${id})`,
  })),
);
const ofCommandsAlone = commands.filter(({ operation: { audience } }) => audience === 'command');

let world: World;
let visitor: FakeBrowser;
let before: unknown;
let batch: string;

beforeAll(async () => {
  world = await createWorld(hub, {
    servers: 'stopped',
    isNamed: true,
    hasLogins: true,
    hasFailures: false,
    hasInvitation: false,
    hasRole: true,
    hasService: true,
    hasShares: true,
    hasKey: true,
    hasBudget: true,
  });
  await send('POST', `/roles/${visitorRole}`, { scopes: ['(no_scope)'] });
  await send('POST', `/roles/${visitorRole}/assignments`, { users: [visitorName] });
  visitor = await hub.logIn(visitorName, testPassword);
  batch = await startBatch();
  before = await state();
});
afterAll(() => hub[Symbol.asyncDispose]());

async function send(method: string, path: string, body: unknown): Promise<unknown> {
  const answer = await hub.api(path, adminToken, { method, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

let given = '';
/** The same as the hub stores it. */
let stored: readonly string[] = [];

/** Gives the visitor these rights and no others beside those over themselves. */
async function giveVisitor(rights: readonly Right[]): Promise<void> {
  const scopes = rights.length === 0 ? ['(no_scope)'] : rights.map(scopeOf);
  if (given === scopes.join(' ')) return;
  const role = await send('PATCH', `/roles/${visitorRole}`, { scopes });
  ({ scopes: stored } = role as { scopes: string[] });
  given = scopes.join(' ');
}

/** Everything of the world; of the visitor's role it says no more than that it allows what it was made to allow. */
async function state(): Promise<unknown> {
  const parts = (await snapshot(hub, world)) as [title: string, ...rows: unknown[]][];
  return parts.map(([title, ...rows]) => [
    title,
    ...(title === 'roles' ? rows.map(asGiven) : rows),
  ]);
}

function asGiven(row: unknown): unknown {
  const role = Object.fromEntries(row as [string, string][]);
  const isAsGiven =
    role['name'] === visitorRole && isDeepStrictEqual(JSON.parse(role['scopes'] ?? ''), stored);
  return isAsGiven ? { ...role, scopes: 'as given' } : role;
}

/** Work for many users that the visitor began; it fails for more of them than a notice names. */
async function startBatch(): Promise<string> {
  await giveVisitor([{ scope: 'admin-ui' }, { scope: 'start:servers' }]);
  const sent = new URLSearchParams({ _csrf: await csrfOf(visitor), act: 'start' });
  for (const name of ['no1', 'no2', 'no3', 'no4']) sent.append('user', name);
  const { headers, body } = await visitor.request(`${hub.url}hub/admin/act-on-users`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: sent.toString(),
  });
  const [, id] = /\/batches\/(.+)/.exec(headers.location ?? '') ?? [];
  if (id === undefined) throw new Error(`there is no batch: ${body}`);
  return id;
}

/** The address of an entrance to something of the owner. */
function urlOf({ path }: Pick<Entrance, 'path'>): string {
  const values: Readonly<Record<string, string>> = {
    name: world.owner.name,
    owner: world.owner.name,
    user: world.owner.name,
    group: world.team,
    server: world.server,
    service: world.service,
    role: world.role,
    key: world.key,
    id: world.owner.tokenId,
    batch,
  };
  const filled = path
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? 'none')
    .replace('{/*rest}', '');
  return `${hub.url}hub${filled}`;
}

async function enter(
  browser: FakeBrowser,
  entrance: Entrance,
  fields: Readonly<Record<string, string>> = {},
): Promise<BrowserAnswer> {
  if (entrance.kind === 'page') return browser.request(urlOf(entrance));
  return browser.request(urlOf(entrance), {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({
      _csrf: await csrfOf(browser),
      ...entrance.fields,
      ...fields,
    }).toString(),
  });
}

const csrfTokens = new WeakMap<FakeBrowser, string>();

/** The same for as long as a login lasts. */
async function csrfOf(browser: FakeBrowser): Promise<string> {
  const known = csrfTokens.get(browser);
  if (known !== undefined) return known;
  const { body } = await browser.request(`${hub.url}hub/account`);
  const token = /name="_csrf" value="([^"]+)"/.exec(body)?.[1];
  if (token === undefined) throw new Error(`there is no token: ${body}`);
  csrfTokens.set(browser, token);
  return token;
}

/** The cookies of an administrator who logged in long ago. */
async function stealOldLogin(): Promise<FakeBrowser> {
  const admin = await hub.logIn('ada', testPassword);
  await ageLogins(hub);
  return withStolenCookies(admin);
}

/**
 * Whether the path says what the operation is done to; else a field does, or it is something of the visitor's own, or
 * open to all. A path without a server means the default one.
 */
const isAboutPath = ({ path, operation, fields }: Entrance): boolean => {
  if (fields !== undefined || typeof operation.scopes === 'string') return false;
  const inPath: readonly string[] = [...parameterNames(path), 'server'];
  const isNamed = parameterNames(operation.path).every((name) => inPath.includes(name));
  return isNamed || (operation.target ?? 'hub') === 'hub';
};

/** Whether another entrance, or the authorisation matrix of the API, asks the same by the same declaration. */
const isAskedRemotely = ({ operation }: Entrance): boolean =>
  entrances.some((other) => isAboutPath(other) && other.operation === operation) ||
  declarations.some(({ id, scopes }) => id === operation.id && scopes === operation.scopes);

/** What an entrance answered to one of those who may not, and to one who may look. */
interface Asked extends Pick<BrowserAnswer, 'status' | 'body'> {
  readonly name: string;
  readonly verdict: Verdict;
}

/** With which rights an entrance is asked, and what is to come of it. */
function callsOf(entrance: (typeof entrances)[number]) {
  const { areaScope, path, kind } = entrance;
  const operation = { ...entrance.operation, path: path as `/${string}` };
  const area: readonly Right[] = areaScope === undefined ? [] : [{ scope: areaScope }];
  return callersOf(operation, world).flatMap((caller) => {
    if (caller.credentials.kind !== 'scopes' || caller.rights === undefined) return [];
    const rights = [...caller.rights, ...area];
    const verdict = verdictOf(operation, { ...caller, rights: [...rights, ...own] }, world);
    return verdict === 'allowed' && kind === 'form' ? [] : [{ entrance, rights, caller, verdict }];
  });
}

const namesOfRights = ({ rights }: { readonly rights: readonly Right[] }) =>
  rights.map(scopeOf).join(' ');

const own: readonly Right[] = selfScopes.map((scope) => ({
  scope,
  filter: { kind: 'user', value: visitorName },
}));

describe('each page and form', () => {
  test('is bound to an operation', () => {
    expect(forms.length).toBeGreaterThan(4);
    expect(entrances.length).toBeGreaterThan(forms.length);
  });

  test.for(forms)('$title is asked with all kinds of rights, here or elsewhere', (form) => {
    // What anyone who is logged in may do, they do with what is their own.
    const isForAnyone = form.operation.scopes === 'authenticated';
    const isAsked = isAboutPath(form) || forMany.includes(form) || isAskedRemotely(form);
    expect(isAsked || isForAnyone).toBe(true);
  });

  const ofPagesAlone = forms.filter(({ operation: { audience } }) => audience === 'page');
  test.for([...ofPagesAlone.filter(({ areaScope }) => areaScope), ...ofCommandsAlone])(
    '$title asks for no less than the API for the same',
    ({ operation }) => {
      const [action] = auditActionsOf(operation);
      const ofApi = declarations.filter((other) => auditActionsOf(other)[0] === action);
      if (action === undefined || ofApi.length === 0) return;
      const isLike = ({ scopes, needsRecentLogin }: OperationDeclaration) =>
        isDeepStrictEqual(
          [scopes, needsRecentLogin],
          [operation.scopes, operation.needsRecentLogin],
        );
      expect(ofApi.filter(isLike).map(({ id }) => id)).not.toEqual([]);
    },
  );

  const aboutPath = entrances.filter(isAboutPath);
  const asked = new Map<Entrance, Asked[]>(aboutPath.map((entrance) => [entrance, []]));
  const changedWith: string[] = [];
  beforeAll(async () => {
    // All that are asked with the same rights one after the other: to give them takes longer than to ask.
    for (const calls of Map.groupBy(aboutPath.flatMap(callsOf), namesOfRights).values()) {
      for (const { entrance, rights, caller, verdict } of calls) {
        await giveVisitor(rights);
        const answer = await enter(visitor, entrance);
        asked.get(entrance)?.push({ name: caller.name, verdict, ...answer });
      }
      if (!isDeepStrictEqual(await state(), before)) changedWith.push(given);
    }
  });
  afterAll(() => asked.clear());

  test.for(aboutPath)('$title refuses all who may not', (entrance) => {
    // Who holds the scope for a user who may do more is refused by the power over users.
    const more = entrance.operation.actsOnUser === true ? [403] : [];
    let refused = 0;
    for (const { name, verdict, status, body } of asked.get(entrance) ?? []) {
      if (verdict === 'allowed')
        expect([200, 302, 400, 424, ...more], name + body).toContain(status);
      else expect(status, name).toBe(verdict);
      if (verdict !== 'allowed') refused += 1;
    }
    expect(refused).toBeGreaterThan(0);
  });

  test('changes nothing for those who may not', () => {
    expect(asked.size).toBeGreaterThan(50);
    expect(changedWith).toEqual([]);
  });

  test.for(forMany)(
    '$title does it for none of those for whom the visitor may not',
    async (form) => {
      const { operation } = form;
      const { name } = world.owner;
      const fields = {
        user: name,
        confirmed: 'true',
        confirmation: name,
        from_group: world.team,
        to_group: world.team,
        idle_minutes: '60',
        people: 'newcomer',
        batch,
      };
      for (const caller of callersOf(operation, world)) {
        if (caller.credentials.kind !== 'scopes' || caller.rights === undefined) continue;
        const rights = [...caller.rights, { scope: 'admin-ui' }];
        if (verdictOf(operation, { ...caller, rights: [...rights, ...own] }, world) === 'allowed')
          continue;
        await giveVisitor(rights);
        const { body } = await enter(visitor, form, fields);
        const next = await visitor.request(`${hub.url}hub/account`);
        expect(body + next.body, caller.name).toMatch(
          /Not done for 1 user|No link for 1 user|There is no group|don’t have the permission|Nothing is known/,
        );
      }
      expect(await state()).toEqual(before);
    },
  );

  const inAreas = entrances.filter(({ areaScope }) => areaScope !== undefined);
  test.for(inAreas)('$title refuses who lacks the scope of its pages', async (entrance) => {
    const { scopes } = entrance.operation;
    await giveVisitor(typeof scopes === 'string' ? [] : scopes.map((scope) => ({ scope })));
    expect((await enter(visitor, entrance)).status).toBe(403);
    expect(await state()).toEqual(before);
  });

  test.for(entrances)('$title sends who is not logged in to the login', async (entrance) => {
    const answer = await new FakeBrowser().request(urlOf(entrance), {
      ...(entrance.kind === 'form' && {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      }),
    });
    expect([302, 303, 403]).toContain(answer.status);
    if (answer.status !== 403) expect(answer.headers.location).toMatch(/^\/hub\/login/);
    expect(await state()).toEqual(before);
  });
});

describe('each page', () => {
  const pages = entrances.filter(({ kind }) => kind === 'page');
  let thief: FakeBrowser;
  beforeAll(async () => {
    thief = await stealOldLogin();
  });

  test.for(pages)('$path asks who is there if and only if what it shows needs it', async (page) => {
    const { headers } = await enter(thief, page);
    const isAsked = headers.location?.startsWith('/hub/confirm-login') ?? false;
    expect(isAsked).toBe(page.operation.needsRecentLogin === true);
  });
});

describe('each form', () => {
  let admin: FakeBrowser;
  beforeAll(async () => {
    admin = await hub.logIn('ada', testPassword);
  });

  test.for(forms)('$path is refused without what only its page has', async (form) => {
    const answer = await admin.request(urlOf(form), {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    });
    expect(answer.status).toBe(403);
    expect(await state()).toEqual(before);
  });

  test.for(forms)('$path asks who is there if and only if its operation does', async (form) => {
    const thief = await stealOldLogin();
    const untouched = form.operation.needsRecentLogin === true ? await state() : undefined;
    const { status, body } = await enter(thief, form);
    if (untouched !== undefined) {
      expect(status).toBe(403);
      expect(body).toContain('Confirm it’s you');
      expect(await state()).toEqual(untouched);
    } else expect(body).not.toContain('Confirm it’s you');
  });
});

describe('each command', () => {
  const isForCommands = ({ audience, byCommand }: OperationDeclaration) =>
    audience === 'command' || byCommand !== undefined;

  test('is bound to operations that are declared to be performed by commands, and to all of them', () => {
    const bound = new Set(commands.map(({ operation }) => operation.id));
    const declared = allOperations.filter(isForCommands).map(({ id }) => id);
    expect([...bound].toSorted()).toEqual(declared.toSorted());
  });

  test.for(commands.filter((command) => command.arguments.length > 0))(
    '$title does nothing for one whom the operation does not find',
    async ({ name, arguments: args, needed, operation }) => {
      const untouched = await state();
      // Who is to be made must not be there.
      const nobody = name === 'hub user add' ? world.owner.name : 'nobody';
      const named = args.map((each) => (each === 'kind' ? 'user' : nobody));
      const flags = operation.id.startsWith('delete') ? ['--yes'] : [];
      const words = [...name.split(' ').slice(1), ...named, ...needed, ...flags];
      const { exitCode, stdout, stderr } = await runCommand(hub.directory, words);
      expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
      expect(stderr).toMatch(
        /no user nobody|no such|exists already|no failed logins|Invalid request body/,
      );
      expect(await state()).toEqual(untouched);
    },
  );

  test.for(ofCommandsAlone)('$title is no operation of the API', async ({ operation }) => {
    const path = operation.path.replace('{name}', world.owner.name);
    const body = operation.method === 'GET' ? {} : { body: '{}' };
    const { status } = await hub.api(path, adminToken, { method: operation.method, ...body });
    expect(status).toBe(404);
  });

  test('can have no other operation performed, though it holds every right', async () => {
    const untouched = await state();
    const file = join(hub.directory, 'hub.config.json');
    const { config } = await loadCheckedConfig({ file, env: {} });
    const options = { directory: hub.directory, log: pino({ level: 'silent' }) };
    await using database = await openDatabase(config.Hub.database_url, options);
    const [instance] = await createInstanceStore(database).list();
    if (instance === undefined) throw new Error('there is no instance');
    const channel = createHubChannel(config, database);
    const others = allOperations.filter((operation) => !isForCommands(operation));
    for (const { id } of others) {
      const call = { operation: id, account: 'root', params: { name: world.owner.name } };
      const performed = channel.call(instance, commandChannelOperation, call);
      await expect(performed, id).rejects.toThrow('another version than this command');
    }
    expect(others.length).toBeGreaterThan(100);
    expect(await state()).toEqual(untouched);
  });
});
