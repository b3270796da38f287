import { announcedPages } from '../../../platform/config/hub-schema.ts';
import { text } from '../../../platform/texts/text.ts';
import type { BoundPages, Changes, Failure } from '../forms/binding.ts';
import {
  announcementFacts,
  announcementsPage,
  maintenanceFacts,
  type TypedNotice,
} from './announcements-page.ts';

const announcementChanges = (): Changes => ({
  actions: ['announcement.set', 'announcement.remove'],
});
const maintenanceChanges = (): Changes => ({
  actions: ['maintenance.begin', 'maintenance.schedule', 'maintenance.end'],
});

/** `/hub/admin/announcements`: what all users are told, and maintenance. */
export function adminAnnouncementRoutes({ page, form, pages: { urls } }: BoundPages): void {
  const again = page('/admin/announcements', 'viewNotices', ({ layout, model, failure }) => {
    const { announcement, maintenance, runningServers } = model;
    const isMaintenance = failure?.path.startsWith('/admin/maintenance') === true;
    const now = isMaintenance ? maintenanceFacts(maintenance) : announcementFacts(announcement);
    return announcementsPage({
      layout,
      announcement,
      maintenance,
      runningServers,
      typed: failure && {
        ...typedIn(failure.sent, isMaintenance ? 'maintenance' : 'announcement'),
        ...outcomeOf(failure),
        changed: failure.changed && { by: failure.changed.by, now },
      },
    });
  });
  const to = urls.adminAnnouncements;

  form('/admin/announcements', 'putAnnouncement', {
    body(sent) {
      const { text: typed, level, page: where, end } = typedAnnouncement(sent);
      return { text: typed, level, pages: where === '' ? null : [where], ...endOf(end) };
    },
    done: () => ({ to, say: text`Announcement published.` }),
    changes: announcementChanges,
    again,
  });

  form('/admin/announcements/remove', 'deleteAnnouncement', {
    done: () => ({ to, say: text`The announcement is taken back.` }),
    changes: announcementChanges,
    again,
  });

  form('/admin/maintenance', 'putMaintenance', {
    body(sent) {
      const { text: typed, start, end } = typedMaintenance(sent);
      return { text: typed, ...(start !== '' && { since: inUtc(start) }), ...endOf(end) };
    },
    isUnfinished: (sent) => sent.get('step') === 'ask',
    done: ({ result: { active } }) => ({
      to,
      say: active ? text`Maintenance is on.` : text`Maintenance is scheduled.`,
    }),
    changes: maintenanceChanges,
    again,
  });

  form('/admin/maintenance/end', 'deleteMaintenance', {
    done: () => ({ to, say: text`Maintenance has ended. Servers can be started.` }),
    changes: maintenanceChanges,
    again,
  });
}

/** What stood in the form; a button alone leaves it as it is now. */
function typedIn(sent: URLSearchParams, form: TypedNotice['form']): TypedNotice {
  if (form === 'maintenance')
    return sent.has('maintenance_text') ? typedMaintenance(sent) : { form };
  return sent.has('text') ? typedAnnouncement(sent) : { form };
}

function typedAnnouncement(sent: URLSearchParams) {
  return {
    form: 'announcement',
    text: plain(sent.get('text')),
    level: sent.get('level') === 'warning' ? 'warning' : 'info',
    page: announcedPages.find((name) => name === sent.get('page')) ?? '',
    end: sent.get('announcement_end') ?? '',
  } as const;
}

function typedMaintenance(sent: URLSearchParams) {
  return {
    form: 'maintenance',
    text: plain(sent.get('maintenance_text')),
    start: sent.get('maintenance_start') ?? '',
    end: sent.get('maintenance_end') ?? '',
  } as const;
}

/** Nobody was told of another version where something else was wrong, or nothing is. */
function outcomeOf({
  sent,
  problem,
  changed,
}: Failure): Pick<TypedNotice, 'problem' | 'version' | 'isUnconfirmed'> {
  const version = changed === undefined ? (sent.get('version') ?? undefined) : undefined;
  return { problem, version, isUnconfirmed: problem === undefined && changed === undefined };
}

/** A time, or seconds from now; for ever where neither was chosen. */
function endOf(chosen: string): { until?: string; expires_in?: number } {
  if (chosen === '') return {};
  return /^\d{1,9}$/.test(chosen) ? { expires_in: Number(chosen) } : { until: inUtc(chosen) };
}

/** A time as a field of a form has it is without a zone. */
function inUtc(typed: string): string {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(typed) ? `${typed}:00Z` : typed;
}

/** Browsers send the ends of lines as two characters. */
function plain(typed: string | null): string {
  return (typed ?? '').replaceAll('\r\n', '\n').trim();
}
