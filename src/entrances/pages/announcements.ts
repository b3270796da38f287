import {
  type AnnouncedPage,
  type Announcement,
  hasBegun,
  type Maintenance,
  type NoticeStore,
  type Notices,
} from '../../cluster/notices/notice-store.ts';
import type { HubConfig } from '../../platform/config/config.ts';
import { exactTime, text } from '../../platform/texts/text.ts';
import type { ShownAnnouncement } from './elements/layout-props.ts';
import { relativeTime } from './elements/quantity.ts';
import { html } from './html.ts';

/** What the operator tells all users, by page. */
export interface Announcements {
  /** What stands on the page at a path. */
  at(path: string): Promise<readonly ShownAnnouncement[]>;
  /** What stands on pages at any path, as far as it was known last: for errors, which wait for nothing. */
  everywhere(): ShownNotices;
  /** Reads again what is announced. */
  refresh(): Promise<void>;
  /** Calls back when something else stands on pages at any path. */
  onChange(listener: () => void): () => void;
  /** Takes the texts of a reloaded configuration over. */
  update(config: AnnouncementConfig): void;
}

export type AnnouncementConfig = Pick<
  HubConfig,
  | 'announcement'
  | 'announcement_login'
  | 'announcement_home'
  | 'announcement_spawn'
  | 'announcement_logout'
>;

/** What stands on a page. */
export interface ShownNotices {
  readonly announcement?: Pick<Announcement, 'text' | 'level' | 'until'> | undefined;
  readonly maintenance?: Pick<Maintenance, 'text' | 'since' | 'until'> | undefined;
}

/** Pages are told apart by the first segment of their path below `hubPath`. */
export function createAnnouncements(deps: {
  readonly hubPath: string;
  readonly config: AnnouncementConfig;
  readonly notices: Pick<NoticeStore, 'current'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}): Announcements {
  const { hubPath, now } = deps;
  let { config } = deps;
  let known: Notices = {};
  let reported: string | undefined;
  const listeners = new Set<() => void>();

  function pageAt(path: string): AnnouncedPage | undefined {
    const [page = ''] = path.startsWith(hubPath) ? path.slice(hubPath.length).split('/', 1) : [];
    switch (page) {
      case 'login':
      case 'logout':
      case 'home':
        return page;
      case 'spawn':
      case 'spawn-pending':
      case 'user':
        return 'spawn';
      default:
        return undefined;
    }
  }

  /** Of the configuration: the text of that one page, empty to have none there, before that of all. */
  function configuredAt(page: AnnouncedPage | undefined): Announcement | undefined {
    const own = page === undefined ? undefined : config[`announcement_${page}`];
    if (own !== undefined) return own === '' ? undefined : { text: own, level: 'warning' };
    const { announcement } = config;
    if (announcement === undefined || announcement === '') return undefined;
    if (typeof announcement === 'string') return { text: announcement, level: 'warning' };
    const { text: announced, level, pages, until } = announcement;
    const isOver = until !== undefined && Date.parse(until) <= now();
    if (isOver || !isFor(pages, page)) return undefined;
    return { text: announced, level, ...(until !== undefined && { until: new Date(until) }) };
  }

  function noticesOn(page: AnnouncedPage | undefined, { announcement, maintenance }: Notices) {
    const isHere = announcement !== undefined && isFor(announcement.pages, page);
    return { announcement: isHere ? announcement : configuredAt(page), maintenance };
  }

  /** Every change of users, groups and rights leads here, and every gateway is told: only of what is new. */
  function tell(): void {
    const shown = JSON.stringify(noticesOn(undefined, known));
    if (shown === reported) return;
    reported = shown;
    for (const listener of listeners) listener();
  }

  return {
    async at(path) {
      // A page about a database that is away must not wait for it.
      const notices = await current().catch(() => known);
      return shownNotices(noticesOn(pageAt(path), notices), now());
    },
    everywhere: () => noticesOn(undefined, known),
    async refresh() {
      await current();
      tell();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    update(changed) {
      config = changed;
      tell();
    },
  };

  async function current(): Promise<Notices> {
    known = await deps.notices.current();
    return known;
  }
}

/** How notices stand on a page; what has ended does not. */
export function shownNotices(
  { announcement, maintenance }: ShownNotices,
  nowMs: number,
): readonly ShownAnnouncement[] {
  const lasts = ({ until }: { readonly until?: Date | undefined }) =>
    until === undefined || until.getTime() > nowMs;
  return [
    ...(maintenance !== undefined && lasts(maintenance)
      ? [
          hasBegun(maintenance, nowMs)
            ? maintenanceNotice(maintenance)
            : scheduledNotice(maintenance, nowMs),
        ]
      : []),
    ...(announcement !== undefined && lasts(announcement)
      ? [{ text: announcement.text, level: announcement.level }]
      : []),
  ];
}

function isFor(
  pages: readonly AnnouncedPage[] | undefined,
  page: AnnouncedPage | undefined,
): boolean {
  return pages === undefined || (page !== undefined && pages.includes(page));
}

function maintenanceNotice({
  text: own,
  until,
}: Pick<Maintenance, 'text' | 'until'>): ShownAnnouncement {
  const rule =
    until === undefined
      ? text`Maintenance: no servers are started. Running servers keep running.`
      : text`Maintenance until ${exactTime(until)}: no servers are started. Running servers keep running.`;
  return { rule, text: own, level: 'warning' };
}

/** With the time that is left, which `countdown.js` keeps right; not for readers of a screen, who would hear each change. */
function scheduledNotice(
  { text: own, since, until }: Pick<Maintenance, 'text' | 'since' | 'until'>,
  nowMs: number,
): ShownAnnouncement {
  const seconds = Math.round((since.getTime() - nowMs) / 1000);
  const left = html`<span aria-hidden="true">(<span data-countdown="${seconds}">${relativeTime(since, new Date(nowMs))}</span>)</span>`;
  const rule =
    until === undefined
      ? text`Maintenance begins at ${exactTime(since)} ${left}: from then on no servers are started. Running servers keep running.`
      : text`Maintenance begins at ${exactTime(since)} ${left} and ends at ${exactTime(until)}: meanwhile no servers are started. Running servers keep running.`;
  return { rule, text: own, level: 'warning', countsDown: true };
}
