import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Tables } from '../../src/platform/store/tables.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { acceptInvitation, inviteUser, testPassword } from '../support/password-hub.ts';
import { adminToken, startUntilReady, tokenOf } from '../support/server-hub.ts';
import { submitLogin, type TestHub } from '../support/test-hub.ts';

/** A user of a world, with a token that may do whatever the user may. */
export interface WorldUser {
  readonly name: string;
  readonly token: string;
  /** Id of the token; what an operation on tokens names. */
  readonly tokenId: string;
  /** Id of a login; only where a world has logins. */
  readonly sessionId: string;
}

/** Things of their own for one call, which may delete them. */
export interface World {
  /** Whom the paths of operations name. */
  readonly owner: WorldUser;
  readonly other: WorldUser;
  /** A group with the owner in it, and one with the other. */
  readonly team: string;
  readonly otherTeam: string;
  /** Name of a named server that both users have. */
  readonly server: string;
  readonly service: string;
  /** A role that the owner was given at run time, which allows nothing. */
  readonly role: string;
  readonly adminToken: string;
  readonly adminServiceToken: string;
  readonly plainServiceToken: string;
  readonly gatewayToken: string;
  readonly revokedToken: string;
  readonly budget: string;
  /** Id of a key that signs ID tokens; empty unless the operation is about one. */
  readonly key: string;
  /** A name that nobody and nothing has. */
  readonly freeName: string;
}

/** What a world needs beside users, groups and tokens; made only where an operation touches it. */
export interface WorldOptions {
  readonly servers: 'none' | 'stopped' | 'running';
  /** Whether it is the named server of the owner that runs; the default one otherwise. */
  readonly isNamed: boolean;
  /** Whether the users have tokens, which each of them needs who calls or whose token is named; true unless given. */
  readonly hasTokens?: boolean;
  /** Whether each user is in a group; true unless given. */
  readonly hasTeams?: boolean;
  readonly hasLogins: boolean;
  readonly hasFailures: boolean;
  readonly hasKey?: boolean;
  readonly hasBudget?: boolean;
  readonly hasInvitation: boolean;
  readonly hasRole: boolean;
  /** Whether the users used something this month. */
  readonly hasUse?: boolean;
  /** Whether the other shares a server with the owner and with the team. */
  readonly hasShares: boolean;
  /** Of the world alone, in place of one of the configuration. */
  readonly hasService: boolean;
}

let worlds = 0;

/** Makes new ones of everything in a hub with an administrator `ada` and the services of the matrix. */
export async function createWorld(hub: TestHub, options: WorldOptions): Promise<World> {
  worlds += 1;
  const names = { owner: `owner${worlds}`, other: `other${worlds}` };
  const [team, otherTeam] = [`team${worlds}`, `otherteam${worlds}`];
  const server = 'lab';
  const role = `role${worlds}`;
  const service = `service${worlds}`;
  const post = async (path: string, body: unknown, method = 'POST'): Promise<unknown> => {
    const answer = await hub.api(path, adminToken, { method, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  await post('/users', { usernames: Object.values(names) });
  if (options.hasTeams !== false) {
    await post(`/groups/${team}`, { users: [names.owner] });
    await post(`/groups/${otherTeam}`, { users: [names.other] });
  }

  if (options.hasService) await post(`/services/${service}`, {});
  let key = '';
  if (options.hasKey === true) {
    const { keys } = (await post('/oauth2/jwks', undefined, 'GET')) as { keys: { kid: string }[] };
    key = keys[0]?.kid ?? '';
  }
  const budget = `budget${worlds}`;
  if (options.hasBudget === true) {
    const body = { user: '*', period: 'day', cpu_hours: 1000 };
    const init = { method: 'PUT', body: JSON.stringify(body) };
    const answer = await hub.api(`/budgets/${budget}`, adminToken, init);
    if (!answer.ok) throw new Error(`budget: ${answer.status} ${await answer.text()}`);
  }
  if (options.hasRole) {
    await post(`/roles/${role}`, { scopes: ['(no_scope)'] });
    await post(`/roles/${role}/assignments`, { users: [names.owner] });
  }

  const createUser = async (name: string): Promise<WorldUser> => {
    const { id, token } =
      options.hasTokens === false
        ? { id: 'no-token', token: 'no-token' }
        : ((await post(`/users/${name}/tokens`, { note: 'inherits' })) as {
            id: string;
            token: string;
          });
    if (options.hasLogins) {
      const { secret } = await inviteUser(hub, name);
      await acceptInvitation(hub, secret, testPassword);
    }
    if (options.hasInvitation) await inviteUser(hub, name);
    if (options.servers !== 'none') await post(`/users/${name}/servers/${server}`, {}, 'PUT');
    if (options.servers === 'running' && name === names.owner) {
      const path = options.isNamed ? `servers/${server}` : 'server';
      await startUntilReady(hub, `/users/${name}/${path}`);
    }
    const sessionId = options.hasLogins ? await sessionOf(hub, name) : 'no-session';
    return { name, token, tokenId: id, sessionId };
  };
  const owner = await createUser(names.owner);
  const other = await createUser(names.other);
  if (options.hasShares) {
    for (const recipient of [{ user: owner.name }, { group: team }]) {
      await post(`/shares/${other.name}/${server}`, recipient);
    }
  }
  if (options.hasUse === true) {
    using database = new DatabaseSync(join(hub.directory, 'hub.sqlite'));
    const now = new Date();
    const add = database.prepare(
      `insert into usage_totals
        (kind, subject, span, at, label, wall_seconds, cpu_seconds, gib_seconds, gpu_seconds, cost)
        select 'user', id, 'month', ?, name, 1, 1, 1, 1, 1 from users where name = ?`,
    );
    for (const { name } of [owner, other]) {
      add.run(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()), name);
    }
  }
  if (options.hasFailures) {
    await submitLogin(new FakeBrowser(), hub.url, owner.name, 'not the password');
  }
  return {
    owner,
    other,
    team,
    otherTeam,
    server,
    service: options.hasService ? service : 'wiki',
    role,
    key,
    budget,
    adminToken: await sharedTokens(hub).admin,
    adminServiceToken: adminToken,
    plainServiceToken: 'plain-service-token',
    gatewayToken: 'edge-service-token',
    revokedToken: await sharedTokens(hub).revoked,
    freeName: `free${worlds}`,
  };
}

async function sessionOf(hub: TestHub, name: string): Promise<string> {
  const answer = await hub.api(`/users/${name}/sessions`, adminToken);
  const { sessions } = (await answer.json()) as { sessions: { id: string }[] };
  return sessions[0]?.id ?? 'no-session';
}

interface SharedTokens {
  readonly admin: Promise<string>;
  readonly revoked: Promise<string>;
}

const tokensOfHubs = new WeakMap<TestHub, SharedTokens>();

/** For all worlds of a hub: no operation is done to them. */
function sharedTokens(hub: TestHub): SharedTokens {
  const tokens = tokensOfHubs.get(hub) ?? {
    admin: tokenOf(hub, 'ada'),
    revoked: makeRevokedToken(hub),
  };
  tokensOfHubs.set(hub, tokens);
  return tokens;
}

async function makeRevokedToken(hub: TestHub): Promise<string> {
  const answer = await hub.api('/users/ada/tokens', adminToken, { method: 'POST', body: '{}' });
  const { id, token } = (await answer.json()) as { id: string; token: string };
  await hub.api(`/users/ada/tokens/${id}`, adminToken, { method: 'DELETE' });
  return token;
}

/** What operations change, beside the log of them and what a hub notes of its own accord. */
const changedTables: readonly (keyof Tables)[] = [
  'users',
  'user_info',
  'password_credentials',
  'identities',
  'second_factors',
  'passkeys',
  'recovery_codes',
  'invitations',
  'groups',
  'group_members',
  'roles',
  'role_assignments',
  'login_sessions',
  'access_tokens',
  'servers',
  'shares',
  'share_codes',
  'runtime_services',
  'service_stops',
  'settings',
];

/** Everything an operation could have changed: of what belongs to users, what belongs to those of the world. */
export async function snapshot(hub: TestHub, { owner, other }: World): Promise<unknown> {
  const reported = ['/services', '/lockouts'].map(async (path) => {
    const answer = await hub.api(path, adminToken);
    return [path, answer.status, withoutTimes(await answer.text())];
  });
  using database = new DatabaseSync(join(hub.directory, 'hub.sqlite'), { readOnly: true });
  const ids = database
    .prepare('select id from users where name in (?, ?)')
    .all(owner.name, other.name)
    .map(({ id }) => id);
  const stored = changedTables.map((table) => [
    table,
    ...database
      .prepare(`select * from ${table}`)
      .all()
      // An invitation that was used goes by itself.
      .filter(({ user_id: id, used_at: used }) => (id ? ids.includes(id) : true) && !used)
      // When something was last used changes by being read.
      .map((row) => Object.entries(row).filter(([column]) => !column.startsWith('last_'))),
  ]);
  return [...(await Promise.all(reported)), ...stored];
}

/** How a service does changes by itself. */
function withoutTimes(text: string): string {
  return text.replaceAll(/"(?:cpuCores|memoryBytes|uptimeSeconds)":[\d.]+/g, '');
}
