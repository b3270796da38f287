import { type Kysely, sql } from 'kysely';
import type { AuditEvent } from '../../platform/audit/audit-event.ts';
import { anyVersion, type RequireVersion } from '../../platform/crypto/version.ts';
import { createChangeAwareCache, watchChanges } from '../../platform/store/change-aware-cache.ts';
import { noticesId } from '../../platform/store/change-subject.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import { type LocalizedText, localizedPhrase } from '../../platform/texts/localized-text.ts';
import {
  type Announcement,
  hasBegun,
  inMaintenance,
  type Maintenance,
  versionOfAnnouncement,
  versionOfMaintenance,
} from './notice.ts';

/**
 * What is told to all users at run time, by every instance. What has ended is none. Each change is made only to a
 * version that may be changed.
 */
export interface NoticeStore {
  current(): Promise<Notices>;
  /** Throws `unavailable` while no servers are started. */
  requireNoMaintenance(): Promise<void>;
  announce(announcement: Announcement, requireVersion?: RequireVersion): Promise<void>;
  /** False when there was none. */
  withdraw(requireVersion?: RequireVersion): Promise<boolean>;
  /** At once, or by itself at a later time. */
  beginMaintenance(maintenance: Maintenance, requireVersion?: RequireVersion): Promise<void>;
  endMaintenance(requireVersion?: RequireVersion): Promise<boolean>;
}

export interface Notices {
  readonly announcement?: Announcement | undefined;
  readonly maintenance?: Maintenance | undefined;
}

type Kind = keyof Notices;

export function createNoticeStore(database: HubDatabase): NoticeStore {
  const { kysely, audit, now } = database;
  const cache = createChangeAwareCache<Notices, never>({
    changes: watchChanges(database),
    max: 1,
    invalidatedBy: { changeOf: () => noticesId },
  });

  async function read(from: Kysely<Tables>): Promise<Notices> {
    const rows = await from.selectFrom('notices').selectAll().execute();
    const contentOf = (kind: Kind) => {
      const row = rows.find((each) => each.kind === kind);
      if (row === undefined) return undefined;
      const { since, ...content } = JSON.parse(row.content) as Record<string, unknown>;
      return {
        ...content,
        ...(typeof since === 'number' && { since: new Date(since) }),
        ...(row.until !== null && { until: new Date(row.until) }),
      };
    };
    return {
      announcement: contentOf('announcement') as Announcement | undefined,
      maintenance: contentOf('maintenance') as Maintenance | undefined,
    };
  }

  function lasting({ announcement, maintenance }: Notices): Notices {
    const lasts = ({ until }: { until?: Date | undefined }) =>
      until === undefined || until.getTime() > now();
    return {
      announcement: announcement && lasts(announcement) ? announcement : undefined,
      maintenance: maintenance && lasts(maintenance) ? maintenance : undefined,
    };
  }

  async function current(): Promise<Notices> {
    return lasting(await cache.getOrLoad('all', () => read(kysely)));
  }

  /** What there is, which nobody else changes until the end of the transaction. */
  async function hold(
    transaction: Kysely<Tables>,
    kind: Kind,
    requireVersion: RequireVersion,
  ): Promise<Notices[Kind]> {
    // Transactions of SQLite come one after another anyway.
    if (database.dialect === 'postgres') {
      await sql`lock table notices in share row exclusive mode`.execute(transaction);
    }
    const { announcement, maintenance } = lasting(await read(transaction));
    const isAnnouncement = kind === 'announcement';
    requireVersion(
      isAnnouncement ? versionOfAnnouncement(announcement) : versionOfMaintenance(maintenance),
    );
    return isAnnouncement ? announcement : maintenance;
  }

  async function put(
    kind: Kind,
    { until, ...content }: { readonly until?: Date | undefined },
    auditEvent: AuditEvent,
    requireVersion: RequireVersion = anyVersion,
  ): Promise<void> {
    const values = { content: JSON.stringify(content), until: until?.getTime() ?? null };
    await database.transaction(async (transaction) => {
      await hold(transaction, kind, requireVersion);
      await transaction
        .insertInto('notices')
        .values({ kind, ...values })
        .onConflict((conflict) => conflict.column('kind').doUpdateSet(values))
        .execute();
      await audit.record(transaction, auditEvent);
    });
    database.announceChange({ kind: 'notices_changed' });
  }

  async function remove(
    kind: Kind,
    auditEvent: AuditEvent,
    requireVersion: RequireVersion = anyVersion,
  ): Promise<boolean> {
    const isThere = await database.transaction(async (transaction) => {
      const held = await hold(transaction, kind, requireVersion);
      await transaction.deleteFrom('notices').where('kind', '=', kind).execute();
      if (held !== undefined) await audit.record(transaction, auditEvent);
      return held !== undefined;
    });
    database.announceChange({ kind: 'notices_changed' });
    return isThere;
  }

  return {
    current,

    async requireNoMaintenance() {
      const { maintenance } = await current();
      if (maintenance !== undefined && hasBegun(maintenance, now()))
        throw inMaintenance(maintenance, now());
    },

    announce(announcement, requireVersion) {
      const { text, level, until } = announcement;
      const detail = { ...textIn(text), level, ...untilIn(until) };
      const auditEvent = { action: 'announcement.set', detail } as const;
      return put('announcement', announcement, auditEvent, requireVersion);
    },

    withdraw: (requireVersion) =>
      remove('announcement', { action: 'announcement.remove' }, requireVersion),

    beginMaintenance({ until, since, text }, requireVersion) {
      const isLater = !hasBegun({ since }, now());
      const auditEvent = {
        action: isLater ? 'maintenance.schedule' : 'maintenance.begin',
        detail: {
          ...textIn(text),
          ...(isLater && { starts: since.toISOString() }),
          ...untilIn(until),
        },
      } as const;
      const content = { text, since: since.getTime(), until };
      return put('maintenance', content, auditEvent, requireVersion);
    },

    endMaintenance: (requireVersion) =>
      remove('maintenance', { action: 'maintenance.end' }, requireVersion),
  };
}

function textIn(text: LocalizedText) {
  const languages = typeof text === 'object' && { languages: Object.keys(text) };
  return { text: String(localizedPhrase(text)), ...languages };
}

function untilIn(until: Date | undefined) {
  return until === undefined ? {} : { until: until.toISOString() };
}
