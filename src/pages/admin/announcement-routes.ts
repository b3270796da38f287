import type { Context } from 'koa';
import { announcedPages } from '../../config/hub-schema.ts';
import { HubError } from '../../errors.ts';
import { type Announcement, checkNotice } from '../../notices/notice.ts';
import type { NoticeStore } from '../../notices/notice-store.ts';
import { type Phrase, text, translated } from '../../texts/text.ts';
import type { AdminContext } from './admin-context.ts';
import { type AnnouncementsView, announcementsPage, sameEnd } from './announcements-page.ts';

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

  async function show(ctx: Context, typed?: AnnouncementsView['typed']): Promise<void> {
    const { announcement, maintenance } = await notices.current();
    const layout = await pages.formLayoutFor(ctx);
    const page = announcementsPage({ layout, announcement, maintenance, typed });
    pages.send(ctx, page, typed === undefined ? 200 : 400);
  }

  /** Throws `bad_request` for an end that is none. */
  function endIn(value: string | null, known: Date | undefined): Date | undefined {
    if (value === null || value === '') return undefined;
    if (value === sameEnd) return known;
    const seconds = Number(value);
    if (!Number.isInteger(seconds) || seconds < 1 || seconds > longestLifetimeSeconds) {
      throw new HubError('bad_request', text`This is not a valid duration.`);
    }
    return new Date(now() + seconds * 1000);
  }

  function back(ctx: Context, done: Phrase): void {
    pages.redirectWithNotice(ctx, pages.urls.adminAnnouncements, { kind: 'good', text: done });
  }

  /** Does it, or shows the form again with what is wrong. */
  async function attempt(
    ctx: Context,
    typed: Omit<NonNullable<AnnouncementsView['typed']>, 'problem'>,
    deed: () => Promise<void>,
    done: Phrase,
  ): Promise<void> {
    try {
      await deed();
    } catch (error) {
      if (!(error instanceof HubError && error.code === 'bad_request')) throw error;
      return show(ctx, { ...typed, problem: translated(error.shown.message) });
    }
    back(ctx, done);
  }

  admin.get('/admin/announcements', async (ctx, who) => {
    who.require('admin:announcements');
    await show(ctx);
  });

  admin.post('/admin/announcements', async (ctx, who, form) => {
    who.require('admin:announcements');
    if (form.get('deed') === 'remove') {
      await notices.withdraw();
      return back(ctx, text`The announcement is taken back.`);
    }
    const typed = plain(form.get('text'));
    const deed = async () => {
      const known = (await notices.current()).announcement;
      const page = announcedPages.find((name) => name === form.get('page'));
      const announcement: Announcement = {
        text: typed,
        level: form.get('level') === 'warning' ? 'warning' : 'info',
        pages: page && [page],
        until: endIn(form.get('announcement_end'), known?.until),
      };
      checkNotice(announcement, { now: now(), mayBeEmpty: false });
      await notices.announce(announcement);
    };
    await attempt(ctx, { form: 'announcement', text: typed }, deed, text`It is announced.`);
  });

  admin.post('/admin/maintenance', async (ctx, who, form) => {
    who.require('admin:announcements');
    if (form.get('deed') === 'end') {
      await notices.endMaintenance();
      return back(ctx, text`Maintenance has ended. Servers are started again.`);
    }
    const typed = plain(form.get('maintenance_text'));
    const deed = async () => {
      const known = (await notices.current()).maintenance;
      const until = endIn(form.get('maintenance_end'), known?.until);
      const maintenance = { text: typed, since: known?.since ?? new Date(now()), until };
      checkNotice(maintenance, { now: now(), mayBeEmpty: true });
      await notices.beginMaintenance(maintenance);
    };
    await attempt(ctx, { form: 'maintenance', text: typed }, deed, text`Maintenance is on.`);
  });
}

/** Browsers send the ends of lines as two characters. */
function plain(text: string | null): string {
  return (text ?? '').replaceAll('\r\n', '\n').trim();
}
