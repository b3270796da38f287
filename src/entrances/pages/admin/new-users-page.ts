import type { ImportVerdict } from '../../../identity/accounts/user-imports.ts';
import type { NewUserColumn, NewUsersFile } from '../../../operations/new-users-file.ts';
import { joined, message, type Phrase, readPhrase, text } from '../../../platform/texts/text.ts';
import { csrfField, hiddenFields, textArea } from '../elements/form.ts';
import { adminLayout, pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { duration } from '../elements/quantity.ts';
import { copyableText, copyTexts } from '../elements/secret.ts';
import { type Column, table } from '../elements/table.ts';
import { type Html, type HtmlValue, html, joinHtml } from '../html.ts';

export interface NewUsersView {
  readonly layout: FormLayoutProps;
  readonly typed?: string | undefined;
  readonly problem?: Phrase | undefined;
}

/** The form that users are listed in, as `people`; nothing is made by it. */
export function newUsersPage({ layout, typed, problem }: NewUsersView): Html {
  return adminLayout(layout, {
    title: text`Add users`,
    tab: 'users',
    scripts: ['read-file.js'],
    body: html`${pageHead(text`Add users`, text`You see what will be made of your list before anything is created.`)}
<form class="fields" method="post" action="${layout.urls.adminNewUsers}">
${csrfField(layout)}
${textArea({ name: 'people', label: text`Users`, value: typed, problem, help: text`One on each line, or a table from a spreadsheet with headings such as ${'username, display name, email, groups, role'}.` })}
<div class="field" hidden data-reads-into="field-people"><label for="field-file">${text`Or a CSV file`}</label><input class="input" id="field-file" type="file" accept=".csv,.tsv,.txt,text/csv,text/plain"></div>
<div class="actions"><button class="button primary">${text`Check the list`}</button><a class="button" href="${layout.urls.adminUsers}">${text`Cancel`}</a></div>
</form>`,
  });
}

export interface NewUsersPreview {
  readonly layout: FormLayoutProps;
  /** As it was typed. */
  readonly typed: string;
  readonly file: NewUsersFile;
  /** Of each user of the list. */
  readonly verdicts: readonly {
    readonly name: string;
    readonly verdict: ImportVerdict['verdict'];
    readonly reason?: unknown;
  }[];
}

const columnLabels = {
  name: text`User name`,
  displayName: text`Display name`,
  email: text`E-mail address`,
  groups: text`Groups`,
  roles: text`Roles`,
  isAdmin: text`Administrator`,
} as const satisfies Record<NewUserColumn, Phrase>;

const verdictLabels = {
  create: text`Will be created`,
  exists: text`Exists already`,
  duplicate: text`Listed twice`,
  alike: text`Differs only by capital letters from another`,
  invalid: text`Not possible`,
} as const satisfies Record<ImportVerdict['verdict'], Phrase>;

/** Those that stand together. */
const personColumns: readonly NewUserColumn[] = ['name', 'displayName', 'email'];

/** More are not shown, those with a problem first. */
const maxPreviewRows = 200;

/** What will become of a list, and the button that does it. */
export function newUsersPreviewPage({ layout, typed, file, verdicts }: NewUsersPreview): Html {
  const lines = verdicts.map((each, index) => ({ ...each, user: file.users[index] }));
  const count = lines.filter(({ verdict }) => verdict === 'create').length;
  const problems = lines.filter(
    ({ verdict, reason }) => verdict !== 'create' || reason !== undefined,
  );
  const others = lines.filter((line) => !problems.includes(line));
  const shown = [...problems, ...others].slice(0, maxPreviewRows);
  const left = lines.length - count;
  return adminLayout(layout, {
    title: text`Check the list`,
    tab: 'users',
    body: html`${pageHead(text`Check the list`, text`Nothing is created yet.`)}
<div class="stack-loose">
${notice(left > 0 || count === 0 ? 'warn' : 'good', joined([message('{count, plural, one {# user will be created.} other {# users will be created.}}', { count }), ...(left > 0 ? [message('{count, plural, one {# line is left out.} other {# lines are left out.}}', { count: left })] : [])]))}
${file.unused.length > 0 && notice('info', text`Nothing is made of these columns: ${file.unused.join(', ')}.`)}
<form class="actions" method="post" action="${layout.urls.adminImportUsers}">${csrfField(layout)}${hiddenFields({ people: typed })}${
      count > 0 &&
      html`<button class="button primary" name="act" value="import">${message('{count, plural, one {Create # user} other {Create # users}}', { count })}</button>`
    }<button class="button" name="edit" value="true" formaction="${layout.urls.adminNewUsers}">${text`Change the list`}</button><a class="button" href="${layout.urls.adminUsers}">${text`Cancel`}</a></form>
${table(
  text`Users`,
  [
    { label: text`Line`, cell: ({ user }) => String(user?.line ?? '') },
    {
      // As in the list of users: a column for each would leave none of them room.
      label: columnLabels.name,
      style: 'name',
      cell: ({ user }) => {
        const { displayName, email } = user ?? {};
        const known = [displayName && html`<bdi>${displayName}</bdi>`, email].filter(Boolean);
        return html`${user?.name ?? ''}${known.length > 0 && html`<span class="under">${joinHtml(known, ' · ')}</span>`}`;
      },
    },
    ...file.columns
      .filter((column) => !personColumns.includes(column))
      .map(
        (column): Column<(typeof shown)[number]> => ({
          label: columnLabels[column],
          cell: ({ user }) => cellOf(user?.[column]),
        }),
      ),
    {
      label: text`Result`,
      cell: ({ verdict, reason }) =>
        html`${verdictLabels[verdict]}${reason !== undefined && html`<br><small>${readPhrase(reason)}</small>`}`,
    },
  ],
  shown,
  { style: 'dense' },
)}
${lines.length > shown.length && html`<p class="soft">${text`And ${lines.length - shown.length} more.`}</p>`}
</div>`,
  });
}

function cellOf(value: string | boolean | readonly string[] | undefined): HtmlValue {
  if (value === true) return text`Yes`;
  if (value === undefined || value === false) return '';
  return typeof value === 'string' ? value : value.join(', ');
}

export interface InvitationLinksView {
  readonly layout: FormLayoutProps;
  readonly purpose: 'invitation' | 'reset';
  readonly links: readonly { readonly userName: string; readonly url: string }[];
  /** Why there are no links for others. */
  readonly problems?: readonly Phrase[];
  readonly lifetimeSeconds: number;
}

/** More are only in the text of all links: the page stays small. */
const maxRows = 50;
const maxProblems = 20;

/** Invitation or password-reset links, shown this one time. */
export function invitationLinksPage(view: InvitationLinksView): Html {
  const { layout, purpose, links, problems = [], lifetimeSeconds } = view;
  const count = links.length;
  const title =
    purpose === 'reset'
      ? message('{count, plural, one {Password-reset link} other {Password-reset links}}', {
          count,
        })
      : message('{count, plural, one {Invitation link} other {Invitation links}}', { count });
  const lead = message(
    '{count, plural, one {Send it} other {Send each}} to the person it is for, and to no one else. It works once, for {time}, and is not shown again.',
    { count, time: duration(lifetimeSeconds) },
  );
  const [only] = links;
  return adminLayout(layout, {
    title,
    tab: 'users',
    scripts: links.length > 0 ? ['copy-button.js'] : [],
    body: html`${pageHead(title, lead)}
<div class="stack-loose">
${problems.length > 0 && notice('warn', message('{count, plural, one {No link for # user: {reasons}} other {No link for # users: {reasons}}}', { count: problems.length, reasons: joined(problems.slice(0, maxProblems)) }))}
${
  only !== undefined && links.length === 1
    ? html`<section class="panel once stack"><h2>${only.userName}</h2>${copyableText(only.url, text`Link for ${only.userName}`)}</section>`
    : links.length > 1 && linkList(view)
}
<p><a class="button primary" href="${layout.urls.adminUsers}">${text`Done`}</a></p></div>`,
  });
}

function linkList({ layout, links }: InvitationLinksView): Html {
  return html`${
    links.length <= maxRows &&
    table(
      text`Links`,
      [
        { label: text`User`, style: 'name', cell: ({ userName }) => userName },
        {
          label: text`Link`,
          cell: ({ url }, index) => html`<code id="link-${index}">${url}</code>`,
        },
        {
          label: text`Copy`,
          style: 'end',
          cell: ({ userName }, index) =>
            html`<button class="button small" type="button" hidden data-copy="link-${index}"${copyTexts} aria-label="${text`Copy the link of ${userName}`}">${text`Copy`}</button>`,
        },
      ],
      links,
    )
  }
<form class="panel once stack" method="post" action="${layout.urls.adminLinksCsv}">${csrfField(layout)}
<label for="all-links">${text`All ${links.length} links, one on each line after the name`}</label>
<textarea class="input links" id="all-links" name="links" readonly rows="6" wrap="off" spellcheck="false">
${links.map(({ userName, url }) => `${userName}\t${url}`).join('\n')}</textarea>
<div class="actions"><button class="button" type="button" hidden data-copy="all-links"${copyTexts}>${text`Copy all`}</button><button class="button">${text`Download as CSV`}</button></div>
</form>`;
}
