import {
  type AnnouncedPage,
  type Announcement,
  type Maintenance,
  versionOfAnnouncement,
  versionOfMaintenance,
} from '../../../cluster/notices/notice.ts';
import { exactTime } from '../../../platform/texts/exact-time.ts';
import { type LocalizedText, localizedPhrase } from '../../../platform/texts/localized-text.ts';
import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type ChangedMeanwhile, changedMeanwhile } from '../elements/changed-meanwhile.ts';
import { levelLabels } from '../elements/code-labels.ts';
import { actionForm, csrfField, hiddenFields, selectField, textArea } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';

export interface AnnouncementsView {
  readonly layout: FormLayoutProps;
  readonly announcement: Announcement | undefined;
  readonly maintenance: Maintenance | undefined;
  /** What was sent by one of the forms and cannot be taken. */
  readonly typed?: TypedNotice | undefined;
}

/** What is left out is as it is now. */
export interface TypedNotice {
  readonly form: 'announcement' | 'maintenance';
  readonly text?: string | undefined;
  readonly level?: string | undefined;
  readonly page?: string | undefined;
  readonly end?: string | undefined;
  readonly problem?: Phrase | undefined;
  /** With which the form was drawn, while nobody was told of another. */
  readonly version?: string | undefined;
  readonly changed?: ChangedMeanwhile | undefined;
}

const hour = 3_600;
const day = 24 * hour;
/** How long it lasts, in seconds. */
const lifetimes = [
  { value: '', label: text`When you end it` },
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
      label: text`Where it stands`,
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
    endFact(maintenance.until),
  ];
}

function endFact(until: Date | undefined): ChangedMeanwhile['now'][number] {
  const value = until === undefined ? text`When you end it` : exactTime(until);
  return { label: text`When it ends`, value };
}

/** What all users are told, and maintenance. */
export function announcementsPage(view: AnnouncementsView): Html {
  return adminLayout(view.layout, {
    title: text`Announcements`,
    tab: 'announcements',
    body: html`${pageHead(text`Announcements`, text`What stands here is on the pages of all users at once.`)}
${announcementSection(view)}
${maintenanceSection(view)}`,
  });
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
  label: text`Where it stands`,
  choices: [
    { value: '', label: text`On every page` },
    ...Object.entries(pageLabels).map(([value, label]) => ({ value, label })),
  ],
  value: wrong?.page ?? (announcement?.pages?.length === 1 ? onlyPage : ''),
})}
${endField('announcement', announcement?.until, wrong?.end)}
<div class="actions"><button class="button primary">${text`Announce`}</button></div>
</form>
${
  announcement !== undefined &&
  html`<div class="pages">${actionForm(layout, {
    action: `${urls.adminAnnouncements}/remove`,
    label: text`Take it back`,
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

function maintenanceSection({ layout, maintenance, typed }: AnnouncementsView): Html {
  const { urls } = layout;
  const wrong = typed?.form === 'maintenance' ? typed : undefined;
  const isOn = maintenance !== undefined;
  const version = wrong?.version ?? versionOfMaintenance(maintenance);
  return html`<section class="block"><h2>${text`Maintenance`}</h2>
<p><span class="status ${isOn ? 'warn' : ''}">${isOn ? text`On` : text`Off`}</span></p>
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
${endField('maintenance', maintenance?.until, wrong?.end)}
<div class="actions"><button class="button">${isOn ? text`Save` : text`Begin maintenance`}</button></div>
</form>
${
  isOn &&
  html`<div class="pages">${actionForm(layout, {
    action: `${urls.adminMaintenance}/end`,
    label: text`End maintenance`,
    style: 'small danger',
    fields: { version },
  })}</div>`
}</section>`;
}

function maintenanceLabels(maintenance: Maintenance | undefined): Phrase {
  if (maintenance === undefined) {
    return text`While it is on, no servers are started. Running servers keep running, and administrators may still start servers.`;
  }
  const { until } = maintenance;
  return until === undefined
    ? text`No servers are started. Running servers keep running, and administrators may still start servers.`
    : text`No servers are started. It ends at ${exactTime(until)}. Running servers keep running, and administrators may still start servers.`;
}

function endField(
  of: 'announcement' | 'maintenance',
  until: Date | undefined,
  typed: string | undefined,
): Html {
  const same =
    until === undefined
      ? []
      : [{ value: until.toISOString(), label: text`At ${exactTime(until)}, as now` }];
  return selectField({
    name: `${of}_end`,
    label: text`When it ends`,
    choices: [...same, ...lifetimes],
    value: typed ?? until?.toISOString() ?? '',
  });
}
