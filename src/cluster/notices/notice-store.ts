import { type Kysely, sql } from 'kysely';
import type { AuditEvent } from '../../platform/audit/audit-event.ts';
import {
  type announcedPages,
  type announcementLevels,
  maxAnnouncementLength,
} from '../../platform/config/hub-schema.ts';
import { anyVersion, type RequireVersion, versionOf } from '../../platform/crypto/version.ts';
import { HubError } from '../../platform/errors.ts';
import { createChangeAwareCache, watchChanges } from '../../platform/store/change-aware-cache.ts';
import { noticesId } from '../../platform/store/change-subject.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Tables } from '../../platform/store/tables.ts';
import {
  exactTime,
  joined,
  type LocalizedText,
  localizedPhrase,
  text,
} from '../../platform/texts/text.ts';

export type AnnouncementLevel = (typeof announcementLevels)[number];
export type AnnouncedPage = (typeof announcedPages)[number];

/** What all users are told. Plain text: markup in it is shown as it is. */
export interface Announcement {
  readonly text: LocalizedText;
  readonly level: AnnouncementLevel;
  /** Undefined for every page. */
  readonly pages?: readonly AnnouncedPage[] | undefined;
  readonly until?: Date | undefined;
}

/** No servers are started from its begin on, but by administrators of servers; what runs goes on. */
export interface Maintenance {
  /** What users are told beside; may be empty. */
  readonly text: LocalizedText;
  /** When it begins by itself, or has begun. */
  readonly since: Date;
  /** When it ends by itself; undefined: when it is told to. */
  readonly until?: Date | undefined;
}

/** Tells whether what is announced has changed. */
export function versionOfAnnouncement(announcement: Announcement | undefined): string {
  if (announcement === undefined) return versionOf(null);
  const { text, level, pages, until } = announcement;
  return versionOf([text, level, pages, until]);
}

/** Tells whether maintenance has begun, ended or changed. */
export function versionOfMaintenance(maintenance: Maintenance | undefined): string {
  if (maintenance === undefined) return versionOf(null);
  const { text, since, until } = maintenance;
  return versionOf([text, since, until]);
}

/** Whether maintenance is on; before its begin it is only scheduled. */
export function hasBegun(
  maintenance: Pick<Maintenance, 'since'> | undefined,
  now: number,
): boolean {
  return maintenance !== undefined && maintenance.since.getTime() <= now;
}

/** Throws `bad_request` that says what cannot be announced. */
export function checkNotice(
  { text: announced, until, since }: Pick<Announcement, 'text' | 'until'> & Partial<Maintenance>,
  { now, mayBeEmpty }: { readonly now: number; readonly mayBeEmpty: boolean },
): void {
  const texts = typeof announced === 'string' ? [announced] : Object.values(announced);
  for (const each of texts) checkText(each, mayBeEmpty);
  if (until !== undefined && until.getTime() <= now) {
    throw new HubError('bad_request', text`The end, ${exactTime(until)}, is in the past.`);
  }
  if (until !== undefined && since !== undefined && until <= since) {
    throw new HubError(
      'bad_request',
      text`The end, ${exactTime(until)}, is not after the start, ${exactTime(since)}.`,
    );
  }
}

function checkText(announced: string, mayBeEmpty: boolean): void {
  if (!mayBeEmpty && announced.trim() === '') {
    throw new HubError('bad_request', text`The announcement has no text.`);
  }
  if (announced.length > maxAnnouncementLength) {
    throw new HubError(
      'bad_request',
      text`The text is ${String(announced.length)} characters long; at most ${String(maxAnnouncementLength)} are possible.`,
    );
  }
  if (
    !announced.isWellFormed() ||
    /[^\P{Cc}\n\r\t]|[\u202a-\u202e\u2066-\u2069]/u.test(announced)
  ) {
    throw new HubError('bad_request', text`The text holds control characters.`);
  }
}

/** The refusal of a start. */
function inMaintenance({ text: reason, until }: Maintenance, now: number): HubError {
  const message =
    until === undefined
      ? text`No servers are started during maintenance.`
      : text`No servers are started during maintenance until ${exactTime(until)}.`;
  const others = text`Running servers keep running.`;
  return new HubError('unavailable', message, {
    hint: reason === '' ? others : joined([localizedPhrase(reason), others]),
    retryAfterSeconds: until === undefined ? 300 : Math.ceil((until.getTime() - now) / 1000),
  });
}

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
