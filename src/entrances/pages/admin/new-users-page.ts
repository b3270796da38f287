import { joined, message, type Phrase, text } from '../../../platform/texts/text.ts';
import { checkBox, csrfField, textArea } from '../elements/form.ts';
import { pageHead } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { copyableText, copyTexts } from '../elements/secret.ts';
import { table } from '../elements/table.ts';
import { duration } from '../elements/time.ts';
import { type Html, html } from '../html.ts';
import { adminLayout } from './admin-layout.ts';

export interface NewUsersView {
  readonly layout: FormLayoutProps;
  readonly typedNames?: string | undefined;
  readonly problem?: Phrase | undefined;
  /** Whether accounts have a password here, so that an invitation link makes sense. */
  readonly canInvite: boolean;
}

/** The form that adds users: `names`, `admin`, `invite`. */
export function newUsersPage({ layout, typedNames, problem, canInvite }: NewUsersView): Html {
  return adminLayout(layout, {
    title: text`Add users`,
    tab: 'users',
    body: html`${pageHead(text`Add users`)}
<form class="fields" method="post" action="${layout.urls.adminNewUsers}">
${csrfField(layout)}
${textArea({ name: 'names', label: text`User names`, value: typedNames, problem, help: text`One on each line.` })}
${canInvite && checkBox({ name: 'invite', label: text`Make invitation links`, isChecked: true, help: text`Each link lets one person choose a password, once.` })}
${checkBox({ name: 'admin', label: text`Administrators`, help: text`They may do everything on this hub, also for other users.` })}
<div class="actions"><button class="button primary">${text`Add users`}</button><a class="button" href="${layout.urls.admin}">${text`Cancel`}</a></div>
</form>`,
  });
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
<p><a class="button primary" href="${layout.urls.admin}">${text`Done`}</a></p></div>`,
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
