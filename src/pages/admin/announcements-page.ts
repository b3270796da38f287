import {
  type AnnouncedPage,
  type Announcement,
  type Maintenance,
  shortTime,
} from '../../notices/notice.ts';
import { actionForm, csrfField, selectField, textArea } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';

export interface AnnouncementsView {
  readonly layout: FormLayoutProps;
  readonly announcement: Announcement | undefined;
  readonly maintenance: Maintenance | undefined;
  /** What was typed into one of the forms and cannot be taken. */
  readonly typed?:
    | {
        readonly form: 'announcement' | 'maintenance';
        readonly text: string;
        readonly problem: string;
      }
    | undefined;
}

const hour = 3_600;
const day = 24 * hour;
/** How long it lasts, in seconds. */
const lifetimes = [
  { value: '', label: 'When you end it' },
  { value: String(hour), label: 'In 1 hour' },
  { value: String(4 * hour), label: 'In 4 hours' },
  { value: String(12 * hour), label: 'In 12 hours' },
  { value: String(day), label: 'In 1 day' },
  { value: String(7 * day), label: 'In 1 week' },
  { value: String(30 * day), label: 'In 30 days' },
];

/** Stands for the end there is. */
export const sameEnd = 'same';

const pageWords: Readonly<Record<AnnouncedPage, string>> = {
  login: 'The login page',
  home: 'Home pages',
  spawn: 'Pages on which servers are started',
  logout: 'The page after the logout',
};

/** What all users are told, and maintenance. */
export function announcementsPage(view: AnnouncementsView): Html {
  return adminLayout(view.layout, {
    title: 'Announcements',
    tab: 'announcements',
    body: html`${pageHead('Announcements', 'What stands here is on the pages of all users at once.')}
${announcementSection(view)}
${maintenanceSection(view)}`,
  });
}

function announcementSection({ layout, announcement, typed }: AnnouncementsView): Html {
  const { urls } = layout;
  const wrong = typed?.form === 'announcement' ? typed : undefined;
  const [onlyPage] = announcement?.pages ?? [];
  return html`<section class="block"><h2>Announcement</h2>
<form class="fields" method="post" action="${urls.adminAnnouncements}">
${csrfField(layout)}${textArea({
  name: 'text',
  label: 'Text',
  value: wrong?.text ?? announcement?.text,
  problem: wrong?.problem,
  help: 'Plain text. Web addresses become links.',
})}
${selectField({
  name: 'level',
  label: 'Kind',
  choices: [
    { value: 'info', label: 'Information' },
    { value: 'warning', label: 'Warning' },
  ],
  value: announcement?.level ?? 'info',
})}
${selectField({
  name: 'page',
  label: 'Where it stands',
  choices: [
    { value: '', label: 'On every page' },
    ...Object.entries(pageWords).map(([value, label]) => ({ value, label })),
  ],
  value: announcement?.pages?.length === 1 ? onlyPage : '',
})}
${endField('announcement', announcement?.until)}
<div class="actions"><button class="button primary">Announce</button></div>
</form>
${
  announcement !== undefined &&
  html`<div class="pages">${actionForm(layout, {
    action: urls.adminAnnouncements,
    label: 'Take it back',
    style: 'small danger',
    fields: { deed: 'remove' },
  })}</div>`
}</section>`;
}

function maintenanceSection({ layout, maintenance, typed }: AnnouncementsView): Html {
  const { urls } = layout;
  const wrong = typed?.form === 'maintenance' ? typed : undefined;
  const isOn = maintenance !== undefined;
  const end =
    maintenance?.until === undefined ? '' : ` It ends at ${shortTime(maintenance.until)}.`;
  return html`<section class="block"><h2>Maintenance</h2>
<p><span class="status ${isOn ? 'warn' : ''}">${isOn ? 'On' : 'Off'}</span></p>
<p class="soft">${isOn ? `No servers are started.${end}` : 'While it is on, no servers are started.'} Those that run go on, and administrators may still start servers.</p>
<form class="fields" method="post" action="${urls.adminMaintenance}">
${csrfField(layout)}${textArea({
  name: 'maintenance_text',
  label: 'Text for users',
  value: wrong?.text ?? maintenance?.text,
  problem: wrong?.problem,
  isOptional: true,
})}
${endField('maintenance', maintenance?.until)}
<div class="actions"><button class="button">${isOn ? 'Save' : 'Begin maintenance'}</button></div>
</form>
${
  isOn &&
  html`<div class="pages">${actionForm(layout, {
    action: urls.adminMaintenance,
    label: 'End maintenance',
    style: 'small danger',
    fields: { deed: 'end' },
  })}</div>`
}</section>`;
}

function endField(of: 'announcement' | 'maintenance', until: Date | undefined): Html {
  const same =
    until === undefined ? [] : [{ value: sameEnd, label: `At ${shortTime(until)}, as now` }];
  return selectField({
    name: `${of}_end`,
    label: 'When it ends',
    choices: [...same, ...lifetimes],
    value: until === undefined ? '' : sameEnd,
  });
}
