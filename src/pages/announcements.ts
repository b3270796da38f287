import type { HubConfig } from '../config/config.ts';

/** What the operator tells all users, by page. */
export interface Announcements {
  /** The text for the page at a path; undefined where there is none. */
  at(path: string): string | undefined;
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
export function createAnnouncements(hubPath: string, config: AnnouncementConfig): Announcements {
  let current = config;

  /** The text of that one page; empty to have none there. */
  function ownText(page: string): string | undefined {
    switch (page) {
      case 'login':
        return current.announcement_login;
      case 'logout':
        return current.announcement_logout;
      case 'home':
        return current.announcement_home;
      case 'spawn':
      case 'spawn-pending':
      case 'user':
        return current.announcement_spawn;
      default:
        return undefined;
    }
  }

  return {
    at(path) {
      const page = path.startsWith(hubPath) ? path.slice(hubPath.length).split('/', 1)[0] : '';
      return (ownText(page ?? '') ?? current.announcement) || undefined;
    },
    update(changed) {
      current = changed;
    },
  };
}
