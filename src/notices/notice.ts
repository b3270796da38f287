import {
  type announcedPages,
  type announcementLevels,
  longestAnnouncement,
} from '../config/hub-schema.ts';
import { HubError } from '../errors.ts';

export type AnnouncementLevel = (typeof announcementLevels)[number];
export type AnnouncedPage = (typeof announcedPages)[number];

/** What all users are told. Plain text: markup in it is shown as it is. */
export interface Announcement {
  readonly text: string;
  readonly level: AnnouncementLevel;
  /** Undefined for every page. */
  readonly pages?: readonly AnnouncedPage[] | undefined;
  readonly until?: Date | undefined;
}

/** No servers are started, but by administrators of servers; what runs goes on. */
export interface Maintenance {
  /** What users are told beside; may be empty. */
  readonly text: string;
  readonly since: Date;
  /** When it ends by itself; undefined: when it is told to. */
  readonly until?: Date | undefined;
}

/** Throws `bad_request` that says what cannot be announced. */
export function checkNotice(
  { text, until }: Pick<Announcement, 'text' | 'until'>,
  { now, mayBeEmpty }: { readonly now: number; readonly mayBeEmpty: boolean },
): void {
  if (!mayBeEmpty && text.trim() === '') {
    throw new HubError('bad_request', 'The announcement has no text.');
  }
  if (text.length > longestAnnouncement) {
    throw new HubError(
      'bad_request',
      `The text is ${text.length} characters long; at most ${longestAnnouncement} are possible.`,
    );
  }
  if (!text.isWellFormed() || /[^\P{Cc}\n\r\t]|[\u202a-\u202e\u2066-\u2069]/u.test(text)) {
    throw new HubError('bad_request', 'The text holds control characters.');
  }
  if (until !== undefined && until.getTime() <= now) {
    throw new HubError('bad_request', `The end, ${until.toISOString()}, is in the past.`);
  }
}

/** The refusal of a start. */
export function inMaintenance({ text, until }: Maintenance, now: number): HubError {
  const end = until === undefined ? '' : ` until ${shortTime(until)}`;
  return new HubError('unavailable', `No servers are started during maintenance${end}.`, {
    hint: [text, 'Servers that run go on.'].filter((part) => part !== '').join(' '),
    retryAfterSeconds: until === undefined ? 300 : Math.ceil((until.getTime() - now) / 1000),
  });
}

/** As `2026-01-31 18:00 UTC`. */
export function shortTime(moment: Date): string {
  return `${moment.toISOString().slice(0, 16).replace('T', ' ')} UTC`;
}
