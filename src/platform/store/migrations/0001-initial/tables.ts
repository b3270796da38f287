/** The statements that create the tables and their indexes, but for the audit log and the log of changes. */
export function tablesOf(dialect: 'sqlite' | 'postgres'): readonly string[] {
  const isPostgres = dialect === 'postgres';
  // PostgreSQL would sort names by its own locale; "C" sorts them by bytes, as SQLite does.
  const name = isPostgres ? 'text collate "C"' : 'text';
  // PostgreSQL takes nulls for the largest values, SQLite, and our lists, for the smallest.
  const nullsFirst = isPostgres ? ' nulls first' : '';
  // A search for part of a text reads all of them: from here, which is less than the table.
  const searchIndex = isPostgres
    ? ''
    : 'create index user_info_search on user_info (search_text, user_id);';
  const ofUser = 'text not null references users (id) on delete cascade';

  return `
    create table users (
      id text primary key,
      name ${name} not null unique,
      admin integer not null,
      invited integer not null,
      created_at bigint not null,
      last_activity_at bigint,
      system_account ${name},
      made_for text,
      server_rank integer not null default 3
    );
    create index users_created_at on users (created_at, name);
    create index users_last_activity_at on users (last_activity_at${nullsFirst}, name);
    create index users_server_rank on users (server_rank, name);
    create index users_administrators on users (name) where admin = 1;
    create unique index users_system_account on users (system_account);
    -- Unique, as ids are: SQLite prefers the index of the primary key otherwise, and reads each user.
    create unique index users_never_active on users (id) where last_activity_at is null;
    create table retired_system_accounts (
      name ${name} primary key,
      retired_at bigint not null
    );
    create table user_info (
      user_id text primary key references users (id) on delete cascade,
      display_name text,
      email text,
      email_verified integer not null,
      picture_url text,
      authenticator text,
      search_text text not null
    );
    ${searchIndex}

    create table password_credentials (
      user_id ${ofUser} primary key,
      password_hash text not null,
      must_change integer not null,
      updated_at bigint not null
    );
    create table second_factors (
      user_id ${ofUser} primary key,
      totp_secret_encrypted text not null,
      confirmed_at bigint,
      last_step bigint
    );
    create table recovery_codes (
      user_id ${ofUser},
      code_hash text not null,
      constraint recovery_codes_pkey primary key (user_id, code_hash)
    );
    create table passkeys (
      id text primary key,
      user_id ${ofUser},
      name text not null,
      public_key text not null,
      sign_count bigint not null,
      transports text not null,
      verifies_user integer not null,
      created_at bigint not null,
      last_used_at bigint
    );
    create index passkeys_user on passkeys (user_id);
    create table invitations (
      id text primary key,
      secret_hash text not null unique,
      purpose text not null,
      user_id ${ofUser},
      created_by text not null,
      created_at bigint not null,
      expires_at bigint not null,
      used_at bigint
    );
    create index invitations_user_id on invitations (user_id);
    create index invitations_expires_at on invitations (expires_at);

    create table identities (
      id text primary key,
      user_id ${ofUser},
      authenticator text not null,
      issuer text not null,
      subject text not null,
      display text,
      created_at bigint not null,
      constraint identities_who unique (authenticator, issuer, subject)
    );
    create index identities_user_id on identities (user_id);
    create table auth_states (
      identity_id text primary key references identities (id) on delete cascade,
      encrypted text not null,
      refreshed_at bigint not null
    );

    create table groups (
      id text primary key,
      name ${name} not null unique,
      properties text not null,
      origin text not null,
      created_at bigint not null
    );
    create table group_members (
      group_id text not null references groups (id) on delete cascade,
      user_id ${ofUser},
      origin text not null,
      constraint group_members_key primary key (group_id, user_id)
    );
    create index group_members_user_id on group_members (user_id);
    create table roles (
      name ${name} primary key,
      description text not null,
      scopes text not null,
      origin text not null
    );
    -- A role may be given to a service of the configuration, which no table holds: the subject is a name, and the
    -- stores of users and groups remove or rename it with its subject.
    create table role_assignments (
      role_name ${name} not null references roles (name) on update cascade on delete cascade,
      subject_kind text not null,
      subject_name ${name} not null,
      origin text not null,
      constraint role_assignments_key primary key (role_name, subject_kind, subject_name)
    );
    create index role_assignments_subject on role_assignments (subject_kind, subject_name);

    create table login_sessions (
      session_id text primary key,
      user_id ${ofUser},
      authenticator text not null,
      identity_id text references identities (id) on delete set null,
      created_at bigint not null,
      last_seen_at bigint not null,
      expires_at bigint not null,
      address text not null,
      user_agent text not null,
      upstream_session_id text,
      id_token_encrypted text
    );
    create index login_sessions_user_id on login_sessions (user_id);
    create index login_sessions_identity_id on login_sessions (identity_id);
    create index login_sessions_expires_at on login_sessions (expires_at);
    create index login_sessions_upstream_session_id on login_sessions (upstream_session_id);
    create table authorization_codes (
      code_hash text primary key,
      client_id text not null,
      user_id ${ofUser},
      session_id text not null,
      redirect_uri text,
      scopes text not null,
      code_challenge text,
      created_at bigint not null,
      expires_at bigint not null,
      used_at bigint
    );
    create index authorization_codes_user_id on authorization_codes (user_id);
    create index authorization_codes_session_id on authorization_codes (session_id);
    create index authorization_codes_client_id on authorization_codes (client_id);
    create index authorization_codes_expires_at on authorization_codes (expires_at);
    create table access_tokens (
      id text primary key,
      token_hash text not null unique,
      kind text not null,
      user_id text references users (id) on delete cascade,
      service_name text,
      server_id text,
      client_id text,
      session_id text,
      code_hash text,
      scopes text not null,
      note text not null,
      created_at bigint not null,
      last_used_at bigint,
      expires_at bigint,
      made_by text
    );
    create index access_tokens_user_id on access_tokens (user_id);
    create index access_tokens_service_name on access_tokens (service_name);
    create index access_tokens_server_id on access_tokens (server_id);
    create index access_tokens_client_id on access_tokens (client_id);
    create index access_tokens_session_id on access_tokens (session_id);
    create index access_tokens_code_hash on access_tokens (code_hash);
    create index access_tokens_expires_at on access_tokens (expires_at);
    create index access_tokens_made_by on access_tokens (made_by);

    create table instances (
      id text primary key,
      name text not null unique,
      url text,
      host text not null,
      machine_id text not null,
      pid bigint not null,
      process_start text not null,
      version text not null,
      base_path text not null,
      key_digests text not null,
      settings_digest text not null,
      started_at bigint not null,
      lease_until bigint not null
    );
    create table servers (
      id text primary key,
      user_id ${ofUser},
      name ${name} not null,
      display_name text,
      state text not null,
      url text,
      spawner_state text not null,
      user_options text not null,
      failure text,
      created_at bigint not null,
      started_at bigint,
      last_activity_at bigint,
      instance_id text,
      machine_id text,
      is_queued integer not null default 0,
      idle_timeout_ms bigint,
      max_age_ms bigint,
      idle_from bigint,
      age_from bigint,
      stop_reason text,
      starting_at bigint,
      start_ms bigint,
      start_profile text,
      stopped_at ${isPostgres ? 'bigint' : 'integer'},
      constraint servers_of_user unique (user_id, name)
    );
    create index servers_instance_id on servers (instance_id);
    create index servers_start_profile on servers (start_profile, starting_at);
    create index servers_state_user on servers (state, user_id);
    create index servers_failed on servers (user_id) where state = 'stopped' and failure is not null;
    create table shares (
      id text primary key,
      server_id text not null references servers (id) on delete cascade,
      user_id text references users (id) on delete cascade,
      group_id text references groups (id) on delete cascade,
      scopes text not null,
      created_at bigint not null,
      constraint shares_of_user unique (server_id, user_id),
      constraint shares_of_group unique (server_id, group_id),
      constraint shares_recipient check ((user_id is null) <> (group_id is null))
    );
    create index shares_user_id on shares (user_id);
    create index shares_group_id on shares (group_id);
    create table share_codes (
      id text primary key,
      code_hash text not null unique,
      server_id text not null references servers (id) on delete cascade,
      scopes text not null,
      created_at bigint not null,
      expires_at bigint not null,
      exchange_count integer not null,
      last_exchanged_at bigint
    );
    create index share_codes_server_id on share_codes (server_id);
    create index share_codes_expires_at on share_codes (expires_at);

    create table managed_processes (
      owner text primary key,
      pid bigint not null,
      start_time text not null,
      started_at bigint not null,
      instance_id text
    );
    create table service_owners (
      name text primary key,
      instance_id text not null,
      token_hash text,
      tag text,
      status text
    );
    create table service_stops (
      name text primary key,
      definition_digest text not null,
      stopped_by text,
      stopped_at bigint not null
    );
    create table runtime_services (
      name text primary key,
      client_id text not null unique,
      token_hash text unique,
      definition text not null,
      environment_encrypted text
    );

    create table notices (
      kind text primary key,
      content text not null,
      until bigint
    );
    create table settings (
      key text primary key,
      value text not null
    );
    create table keyv (
      key ${name} primary key,
      value text not null,
      expires_at bigint
    );
    create index keyv_expires_at on keyv (expires_at)`.split(';');
}
