import {
  type announcedPages,
  type announcementLevels,
  maxAnnouncementLength,
} from '../../platform/config/hub-schema.ts';
import { versionOf } from '../../platform/crypto/version.ts';
import { HubError } from '../../platform/errors.ts';
import { exactTime } from '../../platform/texts/exact-time.ts';
import { type LocalizedText, localizedPhrase } from '../../platform/texts/localized-text.ts';
import { joined, text } from '../../platform/texts/text.ts';

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
export function inMaintenance({ text: reason, until }: Maintenance, now: number): HubError {
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
