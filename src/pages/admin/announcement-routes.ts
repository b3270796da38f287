import type { Context } from 'koa';
import { announcedPages } from '../../config/hub-schema.ts';
import type { RequireVersion } from '../../crypto/version.ts';
import { HubError } from '../../errors.ts';
import { type Announcement, checkNotice } from '../../notices/notice.ts';
import type { NoticeStore } from '../../notices/notice-store.ts';
import { type Text, text, translated } from '../../texts/text.ts';
import type { ChangedMeanwhile } from '../elements/changed-meanwhile.ts';
import { type Admin, type AdminContext, isOfFormerVersion, versionIn } from './admin-context.ts';
import {
  announcementFacts,
  announcementsPage,
  maintenanceFacts,
  sameEnd,
  type TypedNotice,
} from './announcements-page.ts';

const longestLifetimeSeconds = 366 * 86_400;

/** `/hub/admin/announcements`: what all users are told, and maintenance. */
export function adminAnnouncementRoutes(
  admin: AdminContext,
  deps: {
    readonly notices: NoticeStore;
    /** Milliseconds since 1970, by the clock of the database. */
    readonly now: () => number;
  },
): void {
  const { pages } = admin;
  const { notices, now } = deps;

  async function show(ctx: Context, typed?: TypedNotice): Promise<void> {
    const { announcement, maintenance } = await notices.current();
    const layout = await pages.formLayoutFor(ctx);
    const page = announcementsPage({ layout, announcement, maintenance, typed });
    pages.send(ctx, page, typed === undefined ? 200 : 400);
  }

  /** Throws `bad_request` for an end that is none. */
  function endIn(value: string, known: Date | undefined): Date | undefined {
    if (value === '') return undefined;
    if (value === sameEnd) return known;
    const seconds = Number(value);
    if (!Number.isInteger(seconds) || seconds < 1 || seconds > longestLifetimeSeconds) {
      throw new HubError('bad_request', text`This is not a valid duration.`);
    }
    return new Date(now() + seconds * 1000);
  }

  function back(ctx: Context, done: Text): void {
    pages.redirectWithNotice(ctx, pages.urls.adminAnnouncements, { kind: 'good', text: done });
  }

  /** Does it, or shows the form again with what is wrong, or with what someone else has done meanwhile. */
  async function attempt(
    { ctx, who, form }: { ctx: Context; who: Admin; form: URLSearchParams },
    typed: TypedNotice,
    deed: (requireVersion: RequireVersion) => Promise<unknown>,
    done: Text,
  ): Promise<void> {
    try {
      await deed(versionIn(form));
    } catch (error) {
      if (isOfFormerVersion(error)) {
        return show(ctx, { ...typed, changed: await changedBy(who, typed.form) });
      }
      if (!(error instanceof HubError && error.code === 'bad_request')) throw error;
      const version = form.get('version') ?? undefined;
      return show(ctx, { ...typed, version, problem: translated(error.shown.message) });
    }
    back(ctx, done);
  }

  async function changedBy(who: Admin, form: TypedNotice['form']): Promise<ChangedMeanwhile> {
    const { announcement, maintenance } = await notices.current();
    return form === 'announcement'
      ? {
          by: await admin.lastActor(who, ['announcement.set', 'announcement.remove']),
          now: announcementFacts(announcement),
        }
      : {
          by: await admin.lastActor(who, ['maintenance.begin', 'maintenance.end']),
          now: maintenanceFacts(maintenance),
        };
  }

  admin.get('/admin/announcements', async (ctx, who) => {
    who.require('admin:announcements');
    await show(ctx);
  });

  admin.post('/admin/announcements', async (ctx, who, form) => {
    who.require('admin:announcements');
    const sent = { ctx, who, form };
    if (form.get('deed') === 'remove') {
      const done = text`The announcement is taken back.`;
      return attempt(sent, { form: 'announcement' }, notices.withdraw, done);
    }
    const typed = {
      form: 'announcement',
      text: plain(form.get('text')),
      level: form.get('level') === 'warning' ? 'warning' : 'info',
      page: announcedPages.find((name) => name === form.get('page')) ?? '',
      end: form.get('announcement_end') ?? '',
    } as const;
    const deed = async (requireVersion: RequireVersion) => {
      const known = (await notices.current()).announcement;
      const announcement: Announcement = {
        text: typed.text,
        level: typed.level,
        pages: typed.page === '' ? undefined : [typed.page],
        until: endIn(typed.end, known?.until),
      };
      checkNotice(announcement, { now: now(), mayBeEmpty: false });
      await notices.announce(announcement, requireVersion);
    };
    await attempt(sent, typed, deed, text`It is announced.`);
  });

  admin.post('/admin/maintenance', async (ctx, who, form) => {
    who.require('admin:announcements');
    const sent = { ctx, who, form };
    if (form.get('deed') === 'end') {
      const done = text`Maintenance has ended. Servers are started again.`;
      return attempt(sent, { form: 'maintenance' }, notices.endMaintenance, done);
    }
    const typed = {
      form: 'maintenance',
      text: plain(form.get('maintenance_text')),
      end: form.get('maintenance_end') ?? '',
    } as const;
    const deed = async (requireVersion: RequireVersion) => {
      const known = (await notices.current()).maintenance;
      const until = endIn(typed.end, known?.until);
      const maintenance = { text: typed.text, since: known?.since ?? new Date(now()), until };
      checkNotice(maintenance, { now: now(), mayBeEmpty: true });
      await notices.beginMaintenance(maintenance, requireVersion);
    };
    await attempt(sent, typed, deed, text`Maintenance is on.`);
  });
}

/** Browsers send the ends of lines as two characters. */
function plain(text: string | null): string {
  return (text ?? '').replaceAll('\r\n', '\n').trim();
}
