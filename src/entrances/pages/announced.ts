import { type ShownNotices, shownNotices } from './announcements.ts';
import type { ShownAnnouncement } from './elements/layout-props.ts';

/** What stands on pages that wait for nothing. */
export interface Announced {
  shown(): readonly ShownAnnouncement[];
  /** Says where it is known; until then nothing is announced. */
  follow(notices: () => ShownNotices, now: () => number): void;
}

export function createAnnounced(): Announced {
  let read = (): readonly ShownAnnouncement[] => [];
  return {
    shown: () => read(),
    follow(notices, now) {
      read = () => shownNotices(notices(), now());
    },
  };
}
