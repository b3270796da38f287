import { sql } from 'kysely';
import type { Migration } from '../migration.ts';

/** What servers used: how far each is counted, what was counted, and its sums. */
export const migration0010: Migration = {
  name: '0010-usage',
  async up(database) {
    await sql`create table server_meters (
      server_id text primary key,
      started_at bigint not null,
      counted_at bigint not null,
      cpu_seconds double precision,
      subject text not null
    )`.execute(database);
    const amounts = sql.join(
      ['wall_seconds', 'cpu_seconds', 'gib_seconds', 'gpu_seconds', 'cost'].map(
        (column) => sql`${sql.id(column)} double precision not null`,
      ),
    );
    await sql`create table usage_records (
      span text not null,
      at bigint not null,
      server_id text not null,
      profile text not null,
      engine text not null,
      source text not null,
      server_name text not null,
      user_id text not null,
      user_name text not null,
      user_groups text not null,
      ${amounts},
      primary key (span, at, server_id, profile, engine, source)
    )`.execute(database);
    await sql`create index usage_records_user on usage_records (user_id, at)`.execute(database);
    await sql`create table usage_totals (
      kind text not null,
      subject text not null,
      span text not null,
      at bigint not null,
      label text not null,
      ${amounts},
      primary key (kind, span, at, subject)
    )`.execute(database);
    await sql`create index usage_totals_subject on usage_totals (kind, subject, span, at)`.execute(
      database,
    );
  },
};
