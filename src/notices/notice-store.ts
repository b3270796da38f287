import type { Deed } from '../audit/deed.ts';
import { createChangeAwareCache, watchChanges } from '../store/change-aware-cache.ts';
import { noticesId } from '../store/change-subject.ts';
import type { HubDatabase } from '../store/database.ts';
import { ownPhrase } from '../texts/own-text.ts';
import { type Announcement, inMaintenance, type Maintenance } from './notice.ts';

/** What is told to all users at run time, by every instance. What has ended is none. */
export interface NoticeStore {
  current(): Promise<Notices>;
  /** Throws `unavailable` while no servers are started. */
  requireNoMaintenance(): Promise<void>;
  announce(announcement: Announcement): Promise<void>;
  /** False when there was none. */
  withdraw(): Promise<boolean>;
  beginMaintenance(maintenance: Maintenance): Promise<void>;
  endMaintenance(): Promise<boolean>;
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
    voidedBy: { changeOf: () => noticesId },
  });

  async function load(): Promise<Notices> {
    const rows = await kysely.selectFrom('notices').selectAll().execute();
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

  async function current(): Promise<Notices> {
    const { announcement, maintenance } = await cache.getOrLoad('all', load);
    const lasts = ({ until }: { until?: Date | undefined }) =>
      until === undefined || until.getTime() > now();
    return {
      announcement: announcement && lasts(announcement) ? announcement : undefined,
      maintenance: maintenance && lasts(maintenance) ? maintenance : undefined,
    };
  }

  async function put(kind: Kind, content: object, until: Date | undefined, deed: Deed) {
    const values = { content: JSON.stringify(content), until: until?.getTime() ?? null };
    await database.transaction(async (transaction) => {
      await transaction
        .insertInto('notices')
        .values({ kind, ...values })
        .onConflict((conflict) => conflict.column('kind').doUpdateSet(values))
        .execute();
      await audit.record(transaction, deed);
    });
    database.announceChange({ kind: 'notices_changed' });
  }

  async function remove(kind: Kind, deed: Deed): Promise<boolean> {
    const isThere = (await current())[kind] !== undefined;
    await database.transaction(async (transaction) => {
      await transaction.deleteFrom('notices').where('kind', '=', kind).execute();
      if (isThere) await audit.record(transaction, deed);
    });
    database.announceChange({ kind: 'notices_changed' });
    return isThere;
  }

  return {
    current,

    async requireNoMaintenance() {
      const { maintenance } = await current();
      if (maintenance !== undefined) throw inMaintenance(maintenance, now());
    },

    announce: ({ until, ...content }) =>
      put('announcement', content, until, {
        action: 'announcement.set',
        detail: {
          text: String(ownPhrase(content.text)),
          ...(typeof content.text === 'object' && { languages: Object.keys(content.text) }),
          level: content.level,
          ...untilIn(until),
        },
      }),

    withdraw: () => remove('announcement', { action: 'announcement.remove' }),

    beginMaintenance: ({ until, since, text }) =>
      put('maintenance', { text, since: since.getTime() }, until, {
        action: 'maintenance.begin',
        detail: { text, ...untilIn(until) },
      }),

    endMaintenance: () => remove('maintenance', { action: 'maintenance.end' }),
  };
}

function untilIn(until: Date | undefined) {
  return until === undefined ? {} : { until: until.toISOString() };
}
