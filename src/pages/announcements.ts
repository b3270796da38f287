import type { HubConfig } from '../config/config.ts';
import type { AnnouncedPage } from '../notices/notice.ts';
import type { NoticeStore, Notices } from '../notices/notice-store.ts';
import { text } from '../texts/text.ts';
import type { ShownAnnouncement } from './elements/layout-props.ts';
import { exactTime } from './elements/time.ts';

/** What the operator tells all users, by page. */
export interface Announcements {
  /** What stands on the page at a path. */
  at(path: string): Promise<readonly ShownAnnouncement[]>;
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

/** Pages are told apart by the first segment of their path below `hubPath`. */
export function createAnnouncements(deps: {
  readonly hubPath: string;
  readonly config: AnnouncementConfig;
  readonly notices: Pick<NoticeStore, 'current'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}): Announcements {
  const { hubPath, notices, now } = deps;
  let { config } = deps;

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
  function configuredAt(page: AnnouncedPage | undefined): ShownAnnouncement | undefined {
    const own = page === undefined ? undefined : config[`announcement_${page}`];
    if (own !== undefined) return own === '' ? undefined : { text: own, level: 'warning' };
    const { announcement } = config;
    if (announcement === undefined || announcement === '') return undefined;
    if (typeof announcement === 'string') return { text: announcement, level: 'warning' };
    const { text: announced, level, pages, until } = announcement;
    const isOver = until !== undefined && Date.parse(until) <= now();
    return isOver || !isFor(pages, page) ? undefined : { text: announced, level };
  }

  return {
    async at(path) {
      const page = pageAt(path);
      // A page about a database that is away must not wait for it.
      const { announcement, maintenance } = await notices.current().catch((): Notices => ({}));
      const announced =
        announcement !== undefined && isFor(announcement.pages, page)
          ? announcement
          : configuredAt(page);
      return [
        ...(maintenance === undefined ? [] : [maintenanceNotice(maintenance)]),
        ...(announced === undefined ? [] : [announced]),
      ];
    },
    update(changed) {
      config = changed;
    },
  };
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
}: NonNullable<Notices['maintenance']>): ShownAnnouncement {
  const rule =
    until === undefined
      ? text`Maintenance: no servers are started. Those that run go on.`
      : text`Maintenance until ${exactTime(until)}: no servers are started. Those that run go on.`;
  return { rule, text: own, level: 'warning' };
}
