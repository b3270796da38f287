import type { Generated, GeneratedAlways, Insertable, Selectable, Updateable } from 'kysely';
import type {
  AccessTokensTable,
  AuthorizationCodesTable,
  ClientLoginsTable,
  GrantsTable,
  ImportedTokensTable,
  RefreshTokensTable,
  SigningKeysTable,
  TakenTokensTable,
} from './oauth-tables.ts';
import type {
  PasskeysTable,
  RecoveryCodesTable,
  SecondFactorsTable,
} from './second-factor-tables.ts';
import type {
  BudgetGrantsTable,
  BudgetsTable,
  HomeSpacesTable,
  ServerMetersTable,
  UsageRecordsTable,
  UsageTotalsTable,
} from './usage-tables.ts';
import type { UserInfoTable, UsersTable, UserVolumesTable } from './user-tables.ts';

/**
 * Every table of the hub. Times are milliseconds since 1970, booleans are 0 or 1, structured values
 * are JSON text: the three forms that SQLite and PostgreSQL share.
 */
export interface Tables {
  users: UsersTable;
  user_info: UserInfoTable;
  user_volumes: UserVolumesTable;
  notices: NoticesTable;
  retired_system_accounts: RetiredSystemAccountsTable;
  password_credentials: PasswordCredentialsTable;
  identities: IdentitiesTable;
  auth_states: AuthStatesTable;
  second_factors: SecondFactorsTable;
  passkeys: PasskeysTable;
  recovery_codes: RecoveryCodesTable;
  invitations: InvitationsTable;
  groups: GroupsTable;
  group_members: GroupMembersTable;
  roles: RolesTable;
  role_assignments: RoleAssignmentsTable;
  login_sessions: LoginSessionsTable;
  authorization_codes: AuthorizationCodesTable;
  access_tokens: AccessTokensTable;
  client_logins: ClientLoginsTable;
  imported_tokens: ImportedTokensTable;
  taken_tokens: TakenTokensTable;
  grants: GrantsTable;
  refresh_tokens: RefreshTokensTable;
  signing_keys: SigningKeysTable;
  servers: ServersTable;
  server_meters: ServerMetersTable;
  usage_records: UsageRecordsTable;
  usage_totals: UsageTotalsTable;
  budget_grants: BudgetGrantsTable;
  budgets: BudgetsTable;
  home_spaces: HomeSpacesTable;
  shares: SharesTable;
  share_codes: ShareCodesTable;
  managed_processes: ManagedProcessesTable;
  instances: InstancesTable;
  service_owners: ServiceOwnersTable;
  runtime_services: RuntimeServicesTable;
  service_stops: ServiceStopsTable;
  favourite_services: FavouriteServicesTable;
  settings: SettingsTable;
  keyv: KeyvTable;
  audit: AuditTable;
  /** What was recorded last, on its way into `audit`. */
  audit_arrivals: AuditStagingTable;
  /** By which user a row of `audit` with several is found. */
  audit_users: AuditUsersTable;
}

/** What is told to all users at run time, one row of each kind. */
export interface NoticesTable {
  kind: string;
  /** JSON. */
  content: string;
  until: number | null;
}

/** Accounts of deleted users, so that no later user of the same name gets their files. */
export interface RetiredSystemAccountsTable {
  name: string;
  retired_at: number;
}

export interface PasswordCredentialsTable {
  user_id: string;
  password_hash: string;
  /** 1 when the next login must choose a new password. */
  must_change: number;
  updated_at: number;
}

/** Who a person is at a provider: (authenticator, issuer, subject) is unique. */
export interface IdentitiesTable {
  id: string;
  user_id: string;
  authenticator: string;
  issuer: string;
  subject: string;
  display: string | null;
  created_at: number;
}

/** What a provider returned at login, encrypted; one row per identity. */
export interface AuthStatesTable {
  identity_id: string;
  encrypted: string;
  /** When refresh_user last succeeded. */
  refreshed_at: number;
}

/** Invitation and password-reset links; the link's secret is stored as a hash. */
export interface InvitationsTable {
  id: string;
  secret_hash: string;
  purpose: string;
  user_id: string;
  created_by: string;
  created_at: number;
  expires_at: number;
  used_at: number | null;
}

export interface GroupsTable {
  id: string;
  name: string;
  properties: string;
  /** `config`, `api` or the name of the authenticator that manages it. */
  origin: string;
  created_at: number;
}

export interface GroupMembersTable {
  group_id: string;
  user_id: string;
  /** Who put the user there: `config`, `api` or an authenticator's name. */
  origin: string;
}

export interface RolesTable {
  name: string;
  description: string;
  /** JSON list of scope strings. */
  scopes: string;
  /** `default`, `config`, `api` or an authenticator's name. */
  origin: string;
}

export interface RoleAssignmentsTable {
  role_name: string;
  /** `user`, `group` or `service`. */
  subject_kind: string;
  subject_name: string;
  origin: string;
}

/** A browser's login. `session_id` is the value of the hub-session-id cookie: not a credential. */
export interface LoginSessionsTable {
  session_id: string;
  user_id: string;
  authenticator: string;
  identity_id: string | null;
  created_at: number;
  last_seen_at: number;
  expires_at: number;
  address: string;
  user_agent: string;
  /** `sid` of the provider's session, for back-channel logout. */
  upstream_session_id: string | null;
  /** Encrypted id_token, for RP-initiated logout. */
  id_token_encrypted: string | null;
  /** JSON list: how the user showed who they are (RFC 8176); null where that is not known. */
  amr: Generated<string | null>;
  /** What that is worth, as OpenID Connect names it. */
  acr: Generated<string | null>;
}

export interface ServersTable {
  id: string;
  user_id: string;
  /** Empty for the default server. */
  name: string;
  display_name: string | null;
  /** `stopped`, `starting`, `running` or `stopping`. */
  state: string;
  /** Where it answers, once started: `http://127.0.0.1:1234` or `http+unix://%2Fpath`. */
  url: string | null;
  spawner_state: string;
  user_options: string;
  /** JSON of the last failure, shown until a start goes well. */
  failure: string | null;
  created_at: number;
  started_at: number | null;
  last_activity_at: number | null;
  /** Instance that started it or took it over; it is the owner's as long as that has its lease. */
  instance_id: string | null;
  /** The one machine on which it can be polled and ended; null where every instance can. */
  machine_id: string | null;
  /** 1 while its start waits in a queue of its engine. */
  is_queued: Generated<number>;
  /** Time limits of this run; null for none. */
  idle_timeout_ms: number | null;
  max_age_ms: number | null;
  /** What the idle time and the age are counted from instead, where that is later than what is stored otherwise. */
  idle_from: number | null;
  age_from: number | null;
  /** Until when its user keeps this run going though it is idle. */
  kept_until: number | null;
  /** Since when this run is paused. */
  paused_at: number | null;
  /** Limit that ended the last run: `idle_timeout` or `max_age`. */
  stop_reason: string | null;
  /** Since when its last start goes or went on. */
  starting_at: number | null;
  /** When its last run ended. */
  stopped_at: number | null;
  /** How long its last good start took, without the time in a queue, and of which profile that was; '' for none. */
  start_ms: number | null;
  start_profile: string | null;
}

/** What a user or the members of a group may do with another user's server. */
export interface SharesTable {
  id: string;
  server_id: string;
  /** Exactly one of these is set. */
  user_id: string | null;
  group_id: string | null;
  /** JSON list of the names of scopes, all of them restricted to the server. */
  scopes: string;
  created_at: number;
}

/** Codes of links by which users get a share of a server; each works until it expires. */
export interface ShareCodesTable {
  id: string;
  code_hash: string;
  server_id: string;
  /** As those of a share. */
  scopes: string;
  created_at: number;
  expires_at: number;
  exchange_count: number;
  last_exchanged_at: number | null;
}

/** Hubs that run on this database or ran on it; times by the clock of the database. */
export interface InstancesTable {
  /** Of one run: the next one has another. */
  id: string;
  /** `Hub.instance_name`. */
  name: string;
  /** Where other instances reach its internal listener. */
  url: string | null;
  /** For people: the host name. */
  host: string;
  /** Processes of instances with the same one see each other and share a loopback interface. */
  machine_id: string;
  pid: number;
  /** Start time of the process as the operating system tells it; with the pid it is unique. */
  process_start: string;
  version: string;
  base_path: string;
  /** JSON list: a digest of each key of `Hub.cookie_secret`, in order. */
  key_digests: string;
  settings_digest: string;
  started_at: number;
  /** Until when what it owns is its own. */
  lease_until: number;
}

/** Children of a hub, so that the next one finds those it left behind. */
export interface ManagedProcessesTable {
  /** `service:<name>` or `server:<id>`. */
  owner: string;
  pid: number;
  /** Start time of the process as the operating system tells it; with the pid it is unique. */
  start_time: string;
  started_at: number;
  /** Instance that started it. */
  instance_id: string | null;
}

/** The instance that runs a managed service; without a row it waits for one. */
export interface ServiceOwnersTable {
  name: string;
  /** It is the owner's as long as that has its lease. */
  instance_id: string;
  /** Hash of the token that was made for this owner's copy; null where the configuration has one. */
  token_hash: string | null;
  /** Carried by all the processes of the copy that was begun last. */
  tag: string | null;
  /** JSON of how it is, for the other instances; null before the owner has told. */
  status: string | null;
}

/** Managed services that stay stopped until they are started by hand. */
export interface ServiceStopsTable {
  name: string;
  /** Of the definition that was stopped: a row of another one counts for nothing. */
  definition_digest: string;
  stopped_by: string | null;
  stopped_at: number;
}

/** Services that users marked to find them first. */
export interface FavouriteServicesTable {
  user_id: string;
  service_name: string;
}

/** Services that were added over the API, beside those of the configuration. */
export interface RuntimeServicesTable {
  name: string;
  client_id: string;
  /** Null for a managed one. */
  token_hash: string | null;
  /** JSON as in `Hub.services`, without name, token, environment and headers. */
  definition: string;
  /** Of a managed one: JSON, which may hold secrets. */
  environment_encrypted: string | null;
  /** JSON, the same; rows from before have them in the definition until a hub starts. */
  headers_encrypted: string | null;
}

/** Single values made once and kept: the uuid of the hub as a client, dynamic registrations. */
export interface SettingsTable {
  key: string;
  value: string;
}

/** Who did what; see `audit/action.ts`. Rows are written once and never changed. */
export interface AuditTable {
  id: GeneratedAlways<number>;
  at: number;
  /** See `ActorKind`. */
  actor_kind: string;
  actor_name: string | null;
  session_id: string | null;
  token_id: string | null;
  address: string | null;
  action: string;
  target_kind: string | null;
  target_name: string | null;
  target_part: string | null;
  /** `done`, `refused` or `failed`. */
  result: string;
  detail: string;
  instance: string | null;
  /** JSON list of names: `Action.users`; null for none. */
  users: string | null;
  /** For how many entries alike it stands. */
  entry_count: Generated<number>;
  /** JSON list of `AuditRepeat`, oldest first; null where it stands for itself alone. */
  repeats: string | null;
}

export interface AuditStagingTable {
  id: GeneratedAlways<number>;
  /** JSON list of what `AuditTable` has in columns, but for `users`; see `packRow`. */
  entry: string;
  /** As in `AuditTable`. */
  users: string | null;
  /** How many names `users` has; 1 for none. */
  user_count: Generated<number>;
}

export interface AuditUsersTable {
  name: string;
  /** `at` and `id` of the row in `audit`. */
  at: number;
  id: number;
}

export interface KeyvTable {
  key: string;
  value: string;
  expires_at: number | null;
}

export type Row<Name extends keyof Tables> = Selectable<Tables[Name]>;
export type NewRow<Name extends keyof Tables> = Insertable<Tables[Name]>;
/** A row of the audit log before it has an id. */
export type AuditRow = Omit<NewRow<'audit'>, 'repeats'> &
  Partial<Pick<NewRow<'audit'>, 'repeats'>> &
  Pick<NewRow<'audit_arrivals'>, 'user_count'>;
export type RowChange<Name extends keyof Tables> = Updateable<Tables[Name]>;
