import { z } from 'zod';
import {
  type Announcement,
  checkNotice,
  hasBegun,
  type Maintenance,
  type NoticeStore,
  versionOfAnnouncement,
  versionOfMaintenance,
} from '../cluster/notices/notice-store.ts';
import {
  announcedPages,
  announcementLevels,
  maxAnnouncementLength,
} from '../platform/config/hub-schema.ts';
import { localizedText } from '../platform/config/language-schema.ts';
import type { LocalizedText } from '../platform/texts/text.ts';
import type { ServerCountStore } from '../workloads/servers/server-count-store.ts';
import { time } from './models.ts';
import { operation, view } from './operation.ts';

export interface Deps {
  readonly notices: NoticeStore;
  /** Milliseconds since 1970, by the clock of the database. */
  readonly now: () => number;
}

const scopes = ['admin:announcements'] as const;

const textIs = (what: string) =>
  `${what}: at most ${maxAnnouncementLength} characters, or an object with one for each language, by its tag: \`{"en": "…", "de": "…"}\`. Readers of another language get that of \`Hub.language\`.`;

const until = z.iso
  .datetime({ offset: true })
  .nullable()
  .optional()
  .describe('When it ends by itself.');

const maxLifetimeSeconds = 366 * 86_400;
const expiresIn = z
  .int()
  .min(1)
  .max(maxLifetimeSeconds)
  .optional()
  .describe('In how many seconds it ends by itself, in place of `until`.');

const announcementModel = z
  .object({
    active: z.boolean(),
    text: localizedText(z.string()).nullable().describe('As it was given.'),
    level: z.enum(announcementLevels).nullable(),
    pages: z.array(z.enum(announcedPages)).nullable().describe('Null for all pages.'),
    until: time.nullable(),
  })
  .meta({ id: 'Announcement' });

const maintenanceModel = z
  .object({
    active: z.boolean().describe('False before its start as well.'),
    text: localizedText(z.string()).nullable().describe('As it was given.'),
    since: time.nullable().describe('In the future while it is only scheduled.'),
    until: time.nullable(),
  })
  .meta({ id: 'Maintenance' });

/** What all users are told, and whether servers are started. */
export const noticeOperations = [
  operation({
    id: 'getAnnouncement',
    method: 'GET',
    path: '/announcement',
    isVersioned: true,
    tag: 'hub',
    summary: 'Read the announcement that was made at run time',
    description: 'That of the configuration file, `Hub.announcement`, is not told here.',
    scopes: 'authenticated',
    answers: { 200: { description: 'The announcement.', schema: announcementModel } },
  }).handle(async (_request, { notices }: Deps) =>
    answerAnnouncement((await notices.current()).announcement),
  ),
  operation({
    id: 'putAnnouncement',
    method: 'PUT',
    path: '/announcement',
    audit: ['announcement.set'],
    isVersioned: true,
    tag: 'hub',
    summary: 'Announce something to all users',
    description:
      'It stands on the pages of every instance at once, in place of `Hub.announcement`, until its end or DELETE.',
    scopes,
    needsRecentLogin: true,
    body: z.strictObject({
      text: localizedText(z.string()).describe(textIs('Plain text')),
      level: z.enum(announcementLevels).default('info'),
      pages: z
        .array(z.enum(announcedPages))
        .min(1)
        .max(announcedPages.length)
        .nullable()
        .optional()
        .describe('On which pages; on all when left out.'),
      until,
      expires_in: expiresIn,
    }),
    answers: { 200: { description: 'The announcement.', schema: announcementModel } },
  }).handle(async ({ body, requireVersion }, { notices, now }: Deps) => {
    const announcement: Announcement = {
      text: trimmed(body.text),
      level: body.level,
      pages: body.pages ?? undefined,
      until: endOf(body, now()),
    };
    checkNotice(announcement, { now: now(), mayBeEmpty: false });
    await notices.announce(announcement, requireVersion);
    return answerAnnouncement(announcement);
  }),
  operation({
    id: 'deleteAnnouncement',
    method: 'DELETE',
    path: '/announcement',
    audit: ['announcement.remove'],
    isVersioned: true,
    tag: 'hub',
    summary: 'Take the announcement back',
    scopes,
    needsRecentLogin: true,
    answers: { 204: { description: 'There is none any more.' } },
  }).handle(async ({ requireVersion }, { notices }: Deps) => {
    await notices.withdraw(requireVersion);
  }),
  operation({
    id: 'getMaintenance',
    method: 'GET',
    path: '/maintenance',
    isVersioned: true,
    tag: 'hub',
    summary: 'Read whether the hub is in maintenance mode',
    description: 'Nobody but administrators can start servers while it is.',
    scopes: 'authenticated',
    answers: { 200: { description: 'Whether it is, and until when.', schema: maintenanceModel } },
  }).handle(async (_request, { notices, now }: Deps) =>
    answerMaintenance((await notices.current()).maintenance, now()),
  ),
  operation({
    id: 'putMaintenance',
    byCommand: true,
    method: 'PUT',
    path: '/maintenance',
    audit: ['maintenance.begin', 'maintenance.schedule'],
    isVersioned: true,
    tag: 'hub',
    summary: 'Start maintenance, or schedule it: no servers are started',
    description:
      'Starts are answered with 503 and `Retry-After`, but for holders of `admin:servers` for all users. Running servers keep running.',
    scopes,
    needsRecentLogin: true,
    body: z
      .strictObject({
        text: localizedText(z.string()).default('').describe(textIs('What users are told')),
        since: z.iso
          .datetime({ offset: true })
          .nullable()
          .optional()
          .describe('When it begins by itself; at once when left out or past.'),
        until,
        expires_in: expiresIn,
      })
      .prefault({}),
    answers: { 200: { description: 'The maintenance.', schema: maintenanceModel } },
  }).handle(async ({ body, requireVersion }, { notices, now }: Deps) => {
    const known = (await notices.current()).maintenance;
    const begun = known !== undefined && hasBegun(known, now()) ? known.since : new Date(now());
    const wanted = new Date(body.since ?? 0);
    const since = wanted.getTime() > now() ? wanted : begun;
    const maintenance: Maintenance = {
      text: trimmed(body.text),
      since,
      until: endOf(body, Math.max(since.getTime(), now())),
    };
    checkNotice(maintenance, { now: now(), mayBeEmpty: true });
    await notices.beginMaintenance(maintenance, requireVersion);
    return answerMaintenance(maintenance, now());
  }),
  operation({
    id: 'deleteMaintenance',
    byCommand: true,
    method: 'DELETE',
    path: '/maintenance',
    audit: ['maintenance.end'],
    isVersioned: true,
    tag: 'hub',
    summary: 'End maintenance, or call it off',
    scopes,
    needsRecentLogin: true,
    answers: { 204: { description: 'Servers are started again.' } },
  }).handle(async ({ requireVersion }, { notices }: Deps) => {
    await notices.endMaintenance(requireVersion);
  }),
  view({ id: 'viewNotices', path: '/admin/announcements', scopes }).handle(
    async (
      _request,
      { notices, serverCounts }: Deps & { readonly serverCounts: ServerCountStore },
    ) => {
      const { running = 0, starting = 0 } = await serverCounts.countByState();
      return { ...(await notices.current()), runningServers: running + starting };
    },
  ),
];

function answerAnnouncement(announcement: Announcement | undefined) {
  const body = {
    active: announcement !== undefined,
    text: announcement?.text ?? null,
    level: announcement?.level ?? null,
    pages: announcement?.pages === undefined ? null : [...announcement.pages],
    until: announcement?.until?.toISOString() ?? null,
  };
  return { status: 200, body, version: versionOfAnnouncement(announcement) } as const;
}

function answerMaintenance(maintenance: Maintenance | undefined, nowMs: number) {
  const body = {
    active: hasBegun(maintenance, nowMs),
    text: maintenance?.text ?? null,
    since: maintenance?.since.toISOString() ?? null,
    until: maintenance?.until?.toISOString() ?? null,
  };
  return { status: 200, body, version: versionOfMaintenance(maintenance) } as const;
}

function trimmed(text: LocalizedText): LocalizedText {
  if (typeof text === 'string') return text.trim();
  return Object.fromEntries(Object.entries(text).map(([tag, each]) => [tag, each.trim()]));
}

function endOf(
  {
    until,
    expires_in: seconds,
  }: {
    readonly until?: string | null | undefined;
    readonly expires_in?: number | undefined;
  },
  nowMs: number,
): Date | undefined {
  if (seconds !== undefined) return new Date(nowMs + seconds * 1000);
  return until === null || until === undefined ? undefined : new Date(until);
}
