import {
  type AnnouncedPage,
  type Announcement,
  hasBegun,
  type Maintenance,
  versionOfAnnouncement,
  versionOfMaintenance,
} from '../../../cluster/notices/notice-store.ts';
import {
  exactTime,
  type LocalizedText,
  localizedPhrase,
  message,
  type Phrase,
  text,
} from '../../../platform/texts/text.ts';
import { type ChangedMeanwhile, changedMeanwhile } from '../elements/changed-meanwhile.ts';
import { levelLabels } from '../elements/code-labels.ts';
import {
  actionForm,
  csrfField,
  hiddenFields,
  selectField,
  textArea,
  textField,
} from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { type Html, html } from '../html.ts';

export interface AnnouncementsView {
  readonly layout: FormLayoutProps;
  readonly announcement: Announcement | undefined;
  readonly maintenance: Maintenance | undefined;
  /** Those that maintenance meets. */
  readonly runningServers: number;
  /** What was sent by one of the forms and cannot be taken. */
  readonly typed?: TypedNotice | undefined;
}

/** What is left out is as it is now. */
export interface TypedNotice {
  readonly form: 'announcement' | 'maintenance';
  readonly text?: string | undefined;
  readonly level?: string | undefined;
  readonly page?: string | undefined;
  readonly start?: string | undefined;
  readonly end?: string | undefined;
  /** Whether maintenance is begun or scheduled once more is known of it. */
  readonly isUnconfirmed?: boolean;
  readonly problem?: Phrase | undefined;
  /** With which the form was drawn, while nobody was told of another. */
  readonly version?: string | undefined;
  readonly changed?: ChangedMeanwhile | undefined;
}

const hour = 3_600;
const day = 24 * hour;
/** How long it lasts, in seconds. */
const lifetimes = [
  { value: '', label: text`Until I remove it` },
  { value: String(hour), label: text`In 1 hour` },
  { value: String(4 * hour), label: text`In 4 hours` },
  { value: String(12 * hour), label: text`In 12 hours` },
  { value: String(day), label: text`In 1 day` },
  { value: String(7 * day), label: text`In 1 week` },
  { value: String(30 * day), label: text`In 30 days` },
];

const kinds = Object.entries(levelLabels).map(([value, label]) => ({ value, label }));

const pageLabels: Readonly<Record<AnnouncedPage, Phrase>> = {
  login: text`The login page`,
  home: text`Home pages`,
  spawn: text`Pages on which servers are started`,
  logout: text`The page after the logout`,
};

/** What is announced now, by the labels of its form. */
export function announcementFacts(announcement: Announcement | undefined): ChangedMeanwhile['now'] {
  if (announcement === undefined) return [];
  const { level, pages = [], until } = announcement;
  return [
    { label: text`Text`, value: localizedPhrase(announcement.text) },
    { label: text`Kind`, value: kinds.find(({ value }) => value === level)?.label ?? level },
    {
      label: text`Show on`,
      value:
        pages.length === 0
          ? text`On every page`
          : pages.map((page, index) => html`${index > 0 && ', '}${pageLabels[page]}`),
    },
    endFact(until),
  ];
}

/** What maintenance is now, by the labels of its form. */
export function maintenanceFacts(maintenance: Maintenance | undefined): ChangedMeanwhile['now'] {
  if (maintenance === undefined) return [];
  return [
    { label: text`Text for users`, value: localizedPhrase(maintenance.text) },
    { label: text`When it begins`, value: exactTime(maintenance.since) },
    endFact(maintenance.until),
  ];
}

function endFact(until: Date | undefined): ChangedMeanwhile['now'][number] {
  const value = until === undefined ? text`Until I remove it` : exactTime(until);
  return { label: text`When it ends`, value };
}

/** What all users are told, and maintenance. */
export function announcementsPage(view: AnnouncementsView): Html {
  return adminLayout(view.layout, {
    title: text`Announcements`,
    tab: 'announcements',
    body: html`${pageHead(text`Announcements`, text`Shown to everyone immediately.`)}
${announcementSection(view)}
${maintenanceSection(view)}`,
  });
}

/** Whether the page asks first whether maintenance is to begin. */
function isConfirming(typed: AnnouncementsView['typed']): boolean {
  return typed?.form === 'maintenance' && typed.isUnconfirmed === true;
}

function announcementSection({ layout, announcement, typed }: AnnouncementsView): Html {
  const { urls } = layout;
  const wrong = typed?.form === 'announcement' ? typed : undefined;
  const [onlyPage] = announcement?.pages ?? [];
  const version = wrong?.version ?? versionOfAnnouncement(announcement);
  return html`<section class="block"><h2>${text`Announcement`}</h2>
<form class="fields" method="post" action="${urls.adminAnnouncements}">
${wrong?.changed !== undefined && changedMeanwhile(wrong.changed)}
${csrfField(layout)}${hiddenFields({ version })}${textArea({
  name: 'text',
  label: text`Text`,
  value: wrong?.text ?? (announcement && localizedPhrase(announcement.text)),
  problem: wrong?.problem,
  help: html`${text`Plain text. Web addresses become links.`} ${severalLanguages(announcement?.text)}`,
})}
${selectField({
  name: 'level',
  label: text`Kind`,
  choices: kinds,
  value: wrong?.level ?? announcement?.level ?? 'info',
})}
${selectField({
  name: 'page',
  label: text`Show on`,
  choices: [
    { value: '', label: text`On every page` },
    ...Object.entries(pageLabels).map(([value, label]) => ({ value, label })),
  ],
  value: wrong?.page ?? (announcement?.pages?.length === 1 ? onlyPage : ''),
})}
${endField(announcement?.until, wrong?.end)}
<div class="actions"><button class="button${!isConfirming(typed) && ' primary'}">${text`Announce`}</button></div>
</form>
${
  announcement !== undefined &&
  html`<div class="pages">${actionForm(layout, {
    action: `${urls.adminAnnouncements}/remove`,
    label: text`Remove announcement`,
    style: 'small danger',
    fields: { version },
  })}</div>`
}</section>`;
}

/** The forms of this page have one text. */
function severalLanguages(own: LocalizedText | undefined): Phrase {
  return typeof own === 'object'
    ? text`It was given in several languages (${Object.keys(own).join(', ')}): what is saved here stands in place of all of them.`
    : '';
}

function maintenanceSection(view: AnnouncementsView): Html {
  const { layout, maintenance, typed } = view;
  const { urls } = layout;
  const wrong = typed?.form === 'maintenance' ? typed : undefined;
  if (wrong !== undefined && isConfirming(wrong)) return confirmation(view, wrong);
  const isScheduled = maintenance !== undefined && !hasBegun(maintenance, layout.now.getTime());
  const isOn = maintenance !== undefined && !isScheduled;
  const version = wrong?.version ?? versionOfMaintenance(maintenance);
  return html`<section class="block" id="maintenance"><h2>${text`Maintenance`}</h2>
<p><span class="status ${maintenance && 'warn'}">${isOn ? text`On` : isScheduled ? text`Scheduled` : text`Off`}</span></p>
<p class="soft">${maintenanceLabels(maintenance)}</p>
<form class="fields" method="post" action="${urls.adminMaintenance}">
${wrong?.changed !== undefined && changedMeanwhile(wrong.changed)}
${csrfField(layout)}${hiddenFields({ version })}${textArea({
  name: 'maintenance_text',
  label: text`Text for users`,
  value: wrong?.text ?? (maintenance && localizedPhrase(maintenance.text)),
  problem: wrong?.problem,
  help: severalLanguages(maintenance?.text),
  isOptional: true,
})}
${
  !isOn &&
  timeField('maintenance_start', {
    label: text`Begins (UTC)`,
    help: text`At once when it is empty.`,
    value: wrong?.start ?? fieldTime(maintenance?.since),
  })
}
${timeField('maintenance_end', {
  label: text`Ends (UTC)`,
  help: text`When you end it when it is empty.`,
  value: wrong?.end ?? fieldTime(maintenance?.until),
})}
<div class="actions">${maintenance === undefined ? html`<button class="button" name="step" value="ask">${text`Continue…`}</button>` : html`<button class="button">${text`Save`}</button>`}</div>
</form>
${
  maintenance !== undefined &&
  html`<div class="pages">${actionForm(layout, {
    action: `${urls.adminMaintenance}/end`,
    label: isOn ? text`End maintenance` : text`Cancel maintenance`,
    style: 'small danger',
    fields: { version },
  })}</div>`
}</section>`;
}

/** What is about to begin, and how many servers it meets, before it is confirmed. */
function confirmation(
  { layout, runningServers: count }: AnnouncementsView,
  typed: TypedNotice,
): Html {
  const { urls } = layout;
  const { text: words = '', start = '', end = '' } = typed;
  const shown = (typed: string) => {
    const time = new Date(`${typed}Z`);
    return Number.isNaN(time.getTime()) ? typed : exactTime(time);
  };
  const fact = (label: Phrase, value: Phrase) => html`<dt>${label}</dt><dd>${value}</dd>`;
  return html`<section class="block" id="maintenance"><h2>${text`Maintenance`}</h2>
${notice(
  count === 0 ? 'good' : 'warn',
  message(
    '{count, plural, =0 {No server runs now.} one {# server runs now. It keeps running, but cannot be started again once it has stopped.} other {# servers run now. They keep running, but cannot be started again once they have stopped.}}',
    { count },
  ),
)}
<dl class="facts">${fact(text`When it begins`, start === '' ? text`At once` : shown(start))}${fact(text`When it ends`, end === '' ? text`When you end it` : shown(end))}${words !== '' && fact(text`Text for users`, words)}</dl>
<form class="fields" method="post" action="${urls.adminMaintenance}">
${csrfField(layout)}${hiddenFields({ version: typed.version, maintenance_text: words, maintenance_start: start, maintenance_end: end })}
<div class="actions"><button class="button primary">${start === '' ? text`Start maintenance` : text`Schedule maintenance`}</button> <a class="button" href="${urls.adminAnnouncements}">${text`Cancel`}</a></div>
</form></section>`;
}

function timeField(
  name: string,
  field: { readonly label: Phrase; readonly help: Phrase; readonly value: string },
): Html {
  return textField({ name, ...field, type: 'datetime-local', isOptional: true });
}

/** As a field for a time has it. */
function fieldTime(time: Date | undefined): string {
  return time?.toISOString().slice(0, 16) ?? '';
}

function maintenanceLabels(maintenance: Maintenance | undefined): Phrase {
  if (maintenance === undefined) {
    return text`While it is on, no servers are started. Running servers keep running, and administrators may still start servers.`;
  }
  const { since, until } = maintenance;
  return until === undefined
    ? text`From ${exactTime(since)} no servers are started. Running servers keep running, and administrators may still start servers.`
    : text`From ${exactTime(since)} until ${exactTime(until)} no servers are started. Running servers keep running, and administrators may still start servers.`;
}

function endField(until: Date | undefined, typed: string | undefined): Html {
  const same =
    until === undefined
      ? []
      : [{ value: until.toISOString(), label: text`At ${exactTime(until)}, as now` }];
  return selectField({
    name: 'announcement_end',
    label: text`When it ends`,
    choices: [...same, ...lifetimes],
    value: typed ?? until?.toISOString() ?? '',
  });
}
