import { volumeSource } from '../../identity/users/user-volume-store.ts';
import { HubError } from '../../platform/errors.ts';
import type { OldDatabase, OldRow } from '../../platform/store/old-database.ts';

/** Whoever holds something, by the id of the row. */
interface OldOwner {
  readonly kind: 'user' | 'group' | 'service';
  readonly id: string;
}

export interface OldUser {
  readonly id: string;
  readonly name: string;
  readonly isAdmin: boolean;
  readonly createdAt: number | undefined;
  readonly lastActivityAt: number | undefined;
}

export interface OldService {
  readonly id: string;
  readonly name: string;
  readonly isAdmin: boolean;
  /** False for one that was added at run time, of which the database says the rest. */
  readonly isOfConfig: boolean;
  readonly isManaged: boolean;
  readonly url: string | undefined;
  readonly info: unknown;
  readonly isDisplayed: boolean;
  readonly skipsConsent: boolean;
  readonly clientId: string | undefined;
  readonly redirectUri: string | undefined;
  readonly allowedScopes: readonly string[];
}

export interface OldToken {
  readonly owner: OldOwner;
  /** Whether it is the token of a service that was added at run time, and the secret of its client. */
  readonly isSecret: boolean;
  readonly prefix: string;
  readonly hash: string;
  readonly note: string;
  readonly scopes: readonly string[];
  readonly createdAt: number | undefined;
  readonly lastUsedAt: number | undefined;
  readonly expiresAt: number | undefined;
}

export interface OldServer {
  readonly id: string;
  readonly userId: string;
  readonly name: string;
  readonly displayName: string | undefined;
  /** The claim that KubeSpawner (7.0 and later) says it has. */
  readonly claim: string | undefined;
  readonly startedAt: number | undefined;
  readonly lastActivityAt: number | undefined;
}

export interface OldShare {
  readonly serverId: string;
  readonly recipient: OldOwner;
  readonly scopes: readonly string[];
  readonly createdAt: number | undefined;
}

/** What a JupyterHub kept, as far as a hub can have it. */
export interface OldHub {
  readonly users: readonly OldUser[];
  readonly groups: readonly {
    readonly id: string;
    readonly name: string;
    readonly properties: string;
  }[];
  readonly members: readonly { readonly groupId: string; readonly userId: string }[];
  /** Without those that come with it. */
  readonly roles: readonly {
    readonly name: string;
    readonly description: string;
    readonly scopes: readonly string[];
  }[];
  readonly assignments: readonly { readonly role: string; readonly holder: OldOwner }[];
  readonly services: readonly OldService[];
  readonly tokens: readonly OldToken[];
  readonly servers: readonly OldServer[];
  readonly shares: readonly OldShare[];
  /** How many tokens there are of users and services that are gone. */
  readonly orphanTokens: number;
  readonly shareCodes: number;
}

/** Revisions of the schema (`alembic/versions`): those of 1.x, and up to 6.x. */
const revisionsBeforeRoles: ReadonlySet<string> = new Set(['4dc2d5a8c53c']);
const revisions: ReadonlySet<string> = new Set([
  ...revisionsBeforeRoles,
  '833da8570507',
  '651f5419b74d',
  '0eee8c825d24',
  '3c2384c5aae1',
  'add181e97222',
  '4621fec11365',
  'afd65840b69e',
  'f460b0348206',
  'ff1860e38070',
  '26fc487e2b43',
  '99eca004846c',
  'bcb4e3b50be6',
  'be8ecf03ddac',
]);

/** Tables of every version, and those that came with roles in 2.0. */
const tables = ['users', 'groups', 'user_group_map', 'services', 'api_tokens', 'spawners'] as const;
const roleTables = ['roles', 'user_role_map', 'group_role_map', 'service_role_map'] as const;

/** Roles that are there without being made; what they allow is for the configuration to say. */
const builtInRoles: ReadonlySet<string> = new Set(['user', 'admin', 'server', 'token']);

/** Tokens that come and go with servers and logins, and those of services that the configuration or a start makes. */
const madeAgain = /^(?:Server at |retrieved from spawner )/;
const madeForService = /^(?:from config|generated at startup)$/;

/** Reads the database of a JupyterHub of 1.x to 6.x, by the tables that it has. Throws `bad_request`. */
export async function readOldHub(database: OldDatabase, nowMs: number): Promise<OldHub> {
  await checkSchema(database);
  const users = await database.read('users', ['id', 'name', 'admin', 'created', 'last_activity']);
  const groups = await database.read('groups', ['id', 'name', 'properties']);
  const members = await database.read('user_group_map', ['group_id', 'user_id']);
  const services = await readServices(database);
  const roles = await database.read('roles', ['id', 'name', 'description', 'scopes']);
  const servers = await database.read('spawners', [
    'id',
    'user_id',
    'name',
    'display_name',
    'state',
    'started',
    'last_activity',
  ]);
  const shares = await database.read('shares', [
    'spawner_id',
    'user_id',
    'group_id',
    'scopes',
    'created_at',
    'expires_at',
  ]);
  const isLive = (time: string | null) => (timeOf(time) ?? Number.POSITIVE_INFINITY) > nowMs;
  return {
    users: users.map((row) => ({
      id: String(row.id),
      name: row.name ?? '',
      isAdmin: isTrue(row.admin),
      createdAt: timeOf(row.created),
      lastActivityAt: timeOf(row.last_activity),
    })),
    groups: groups.map(({ id, name, properties }) => ({
      id: String(id),
      name: name ?? '',
      properties: JSON.stringify(jsonOf(properties, `properties of the group ${name}`) ?? {}),
    })),
    members: members.map((row) => ({ groupId: String(row.group_id), userId: String(row.user_id) })),
    roles: roles.flatMap(({ name, description, scopes }) =>
      name === null || builtInRoles.has(name)
        ? []
        : [
            {
              name,
              description: description ?? '',
              scopes: listOf(scopes, `scopes of the role ${name}`),
            },
          ],
    ),
    assignments: await readAssignments(database, roles),
    services,
    tokens: (await readTokens(database, { roles, services })).filter(
      ({ expiresAt = Number.POSITIVE_INFINITY }) => expiresAt > nowMs,
    ),
    servers: servers.map((row) => ({
      id: String(row.id),
      userId: String(row.user_id),
      name: row.name ?? '',
      displayName: row.display_name ?? undefined,
      claim: claimOf(row),
      startedAt: timeOf(row.started),
      lastActivityAt: timeOf(row.last_activity),
    })),
    shares: shares
      .filter(({ expires_at }) => isLive(expires_at))
      .map((row) => ({
        serverId: String(row.spawner_id),
        recipient: ownerOf({ user: row.user_id, group: row.group_id }),
        scopes: listOf(row.scopes, 'scopes of a share'),
        createdAt: timeOf(row.created_at),
      })),
    orphanTokens: await database.count('api_tokens', `not (${isOwned})`),
    shareCodes: await database.count('share_codes'),
  };
}

async function checkSchema(database: OldDatabase): Promise<void> {
  if (!database.has('alembic_version')) {
    throw new HubError('bad_request', 'This is no database of a JupyterHub.', {
      hint: 'It is named by c.JupyterHub.db_url, and is jupyterhub.sqlite otherwise.',
    });
  }
  const [version] = await database.read('alembic_version', ['version_num']);
  const revision = version?.version_num ?? '';
  if (!revisions.has(revision)) {
    throw new HubError(
      'bad_request',
      `The database has the revision "${revision}", which no JupyterHub from 1.0 to 6.x has.`,
      { hint: 'Bring an older one up to date first: jupyterhub upgrade-db' },
    );
  }
  const wanted = revisionsBeforeRoles.has(revision) ? tables : [...tables, ...roleTables];
  const missing = wanted.filter((table) => !database.has(table));
  if (missing.length === 0) return;
  throw new HubError(
    'bad_request',
    `The database is not complete: there is no table ${missing.join(', ')}.`,
    { hint: 'Take a copy of the whole database, or repair it: jupyterhub upgrade-db' },
  );
}

type RoleRow = OldRow<'id' | 'name' | 'scopes'>;

async function readAssignments(database: OldDatabase, roles: readonly RoleRow[]) {
  const names = new Map(roles.map(({ id, name }) => [id, name ?? '']));
  const found: { readonly role: string; readonly holder: OldOwner }[] = [];
  for (const kind of ['user', 'group', 'service'] as const) {
    const holder = `${kind}_id` as const;
    for (const row of await database.read(`${kind}_role_map`, [holder, 'role_id']))
      found.push({ role: names.get(row.role_id) ?? '', holder: { kind, id: String(row[holder]) } });
  }
  return found;
}

const isOwned =
  '(user_id is not null and user_id in (select id from users)) or (service_id is not null and service_id in (select id from services))';

async function readServices(database: OldDatabase): Promise<OldService[]> {
  const clients = new Map(
    (await database.read('oauth_clients', ['identifier', 'redirect_uri'])).map((row) => [
      row.identifier,
      row.redirect_uri,
    ]),
  );
  const rows = await database.read('services', [
    'id',
    'name',
    'admin',
    'from_config',
    'url',
    'oauth_client_id',
    'oauth_client_allowed_scopes',
    'oauth_no_confirm',
    'info',
    'display',
    'command',
  ]);
  return rows.map((row) => ({
    id: String(row.id),
    name: row.name ?? '',
    isAdmin: isTrue(row.admin),
    isOfConfig: row.from_config === null || isTrue(row.from_config),
    isManaged: listOf(row.command, `command of the service ${row.name}`).length > 0,
    url: row.url || undefined,
    info: jsonOf(row.info, `info of the service ${row.name}`),
    isDisplayed: row.display === null || isTrue(row.display),
    skipsConsent: isTrue(row.oauth_no_confirm),
    clientId: row.oauth_client_id ?? undefined,
    redirectUri: clients.get(row.oauth_client_id) || undefined,
    allowedScopes: listOf(
      row.oauth_client_allowed_scopes,
      `oauth_client_allowed_scopes of the service ${row.name}`,
    ),
  }));
}

async function readTokens(
  database: OldDatabase,
  {
    roles,
    services,
  }: { readonly roles: readonly RoleRow[]; readonly services: readonly OldService[] },
): Promise<OldToken[]> {
  const table = 'api_tokens';
  const conditions = [
    `(${isOwned})`,
    // Of OAuth clients, and of logins.
    ...(database.has(table, 'client_id') ? ["client_id = 'jupyterhub'"] : []),
    ...(database.has(table, 'session_id') ? ['session_id is null'] : []),
  ];
  const rows = await database.read(
    table,
    [
      'id',
      'user_id',
      'service_id',
      'prefix',
      'hashed',
      'note',
      'scopes',
      'created',
      'last_activity',
      'expires_at',
    ],
    conditions.join(' and '),
  );
  const scopesOfRole = new Map(
    roles.map(({ id, name, scopes }) => [id, listOf(scopes, `scopes of the role ${name}`)]),
  );
  const rolesOfToken = Map.groupBy(
    await database.read('api_token_role_map', ['api_token_id', 'role_id']),
    ({ api_token_id }) => api_token_id,
  );
  // Before 2.0 a token could do all that its owner may; 2.x gave it roles, and 3.0 scopes.
  const scopesOf = (row: (typeof rows)[number]) => {
    if (database.has(table, 'scopes')) return listOf(row.scopes, `scopes of the token ${row.id}`);
    if (!database.has('api_token_role_map')) return ['inherit'];
    const held = rolesOfToken.get(row.id) ?? [];
    return [...new Set(held.flatMap(({ role_id }) => scopesOfRole.get(role_id) ?? []))];
  };
  const addedIds = new Set(services.flatMap(({ id, isOfConfig }) => (isOfConfig ? [] : [id])));
  return rows.flatMap((row) => {
    const note = row.note ?? '';
    const isForService = row.service_id !== null && madeForService.test(note);
    const isSecret = isForService && addedIds.has(String(row.service_id));
    if (madeAgain.test(note) || (isForService && !isSecret)) return [];
    return {
      isSecret,
      owner: ownerOf({ user: row.user_id, service: row.service_id }),
      prefix: row.prefix ?? '',
      hash: row.hashed ?? '',
      note,
      scopes: scopesOf(row),
      createdAt: timeOf(row.created),
      lastUsedAt: timeOf(row.last_activity),
      expiresAt: timeOf(row.expires_at),
    };
  });
}

function ownerOf(ids: Partial<Record<OldOwner['kind'], string | null>>): OldOwner {
  const [kind, id] = Object.entries(ids).find(([, each]) => each !== null) ?? ['user', ''];
  return { kind: kind as OldOwner['kind'], id: id ?? '' };
}

/** Throws `bad_request` for text that is no JSON; null for none. */
function jsonOf(text: string | null, what: string): unknown {
  try {
    return JSON.parse(text ?? 'null');
  } catch (cause) {
    throw new HubError('bad_request', `The database is damaged: the ${what} is no JSON.`, {
      hint: 'Correct it in a copy of the database, and import that.',
      cause,
    });
  }
}

function listOf(json: string | null, what: string): readonly string[] {
  const list = jsonOf(json, what);
  return Array.isArray(list) ? list.map(String) : [];
}

function claimOf({ id, state }: OldRow<'id' | 'state'>): string | undefined {
  const { pvc_name: claim }: { readonly pvc_name?: unknown } =
    jsonOf(state, `state of the server ${id}`) ?? {};
  return typeof claim === 'string' && volumeSource.test(claim) ? claim : undefined;
}

/** SQLite has 1, PostgreSQL writes `true`. */
export const isTrue = (value: string | null) => value === '1' || value === 'true';

/** Milliseconds since 1970 of a time in UTC without a zone, as JupyterHub stores it. */
function timeOf(value: string | null): number | undefined {
  const time = Date.parse(`${value?.replace(' ', 'T').replace(/(\.\d{3})\d*/, '$1')}Z`);
  return Number.isNaN(time) ? undefined : time;
}
