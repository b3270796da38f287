import type { Share, ShareCode, ShareRecipient } from '../../sharing/share.ts';
import { actionForm, csrfField, hiddenFields, selectField, textField } from '../elements/form.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { formatCount } from '../elements/quantity.ts';
import { copyableText } from '../elements/secret.ts';
import { table } from '../elements/table.ts';
import { timeElement } from '../elements/time.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { type ShareLevel, shareLevels, shareWords } from './share-words.ts';

export interface ShareView {
  readonly layout: FormLayoutProps;
  readonly ownerName: string;
  /** Empty for the default server. */
  readonly serverName: string;
  readonly shares: readonly Pick<Share, 'recipient' | 'scopeNames' | 'createdAt'>[];
  readonly total: number;
  readonly offset: number;
  readonly limit: number;
  readonly links: readonly Omit<ShareCode, 'server'>[];
  /** Names of other users who have a page of the server open, as far as this is known here. */
  readonly connected: readonly string[];
  /** By user name, of those whom the viewer may read it of. */
  readonly displayNames: ReadonlyMap<string, string>;
  /** What may be given; none for those who may only look. */
  readonly levels: readonly ShareLevel[];
  /** Whom the viewer may name. */
  readonly recipients: readonly ShareRecipient['kind'][];
  /** Shown this once. */
  readonly newLink?: string | undefined;
  readonly typed?: { readonly name: string; readonly problem: string } | undefined;
}

const day = 86_400;
/** How long a link can be made to work, in seconds. */
const lifetimes = [
  { value: '3600', label: '1 hour' },
  { value: String(day), label: '1 day' },
  { value: String(7 * day), label: '1 week' },
  { value: String(30 * day), label: '30 days' },
  { value: String(365 * day), label: '1 year' },
];

/** With whom a server is shared, and the forms that share it and take it back. */
export function sharePage(view: ShareView): Html {
  const { layout, levels, newLink } = view;
  const mayShare = levels.length > 0;
  return pageLayout(layout, {
    title: `Share ${titleOf(view)}`,
    place: 'home',
    scripts: newLink === undefined ? [] : ['copy-button.js'],
    body: html`${pageHead(`Share ${titleOf(view)}`, leadOf(view))}
${newLink !== undefined && newLinkPanel(newLink)}
${!mayShare && notice('warn', 'You may not share servers on this hub. An administrator can allow it with the scope shares!user in the role of users.')}
<section class="block"><h2>Who can open it</h2>
${view.shares.length === 0 ? html`<p class="soft">No one else.</p>` : html`${shareTable(view)}${paging(view)}`}
${whoElseIsThere(view)}
</section>
${mayShare && html`<section class="block"><h2>Share with someone</h2>${recipientForm(view)}</section>`}
<section class="block"><h2>Links</h2>
<p class="soft">Every user of this hub who has the link can accept it until it expires. Deleting a link takes nothing back from those who have accepted it.</p>
${mayShare ? linkForm(view) : view.links.length === 0 && html`<p class="soft">There are none.</p>`}
</section>
${view.links.length > 0 && html`<section class="block"><h2 class="visually-hidden">Links that work</h2>${linkTable(view)}</section>`}`,
  });
}

function titleOf({ layout, ownerName, serverName }: ShareView): string {
  const isOwn = layout.user?.name === ownerName;
  if (serverName === '') return isOwn ? 'your server' : `the server of ${ownerName}`;
  return isOwn ? serverName : `${serverName} of ${ownerName}`;
}

function leadOf({ layout, ownerName }: ShareView): string {
  const whose = layout.user?.name === ownerName ? 'your' : `${ownerName}’s`;
  return `Whoever opens this server works in it with ${whose} files and rights. Share it only with people you trust.`;
}

function newLinkPanel(link: string): Html {
  return html`<section class="panel once stack page-notice" aria-labelledby="new-link"><h2 id="new-link">Your new link</h2>
<p>Copy it now and send it to those who should have it: it is not shown again.</p>
${copyableText(link, 'New link')}</section>`;
}

/** Those who are there by a group; the others are marked in the list. */
function whoElseIsThere({ connected, shares }: ShareView): HtmlValue {
  const others = connected.filter(
    (name) => !shares.some(({ recipient }) => recipient.kind === 'user' && recipient.name === name),
  );
  return (
    others.length > 0 &&
    html`<p class="small"><span class="status good">There now</span> ${others.join(', ')}</p>`
  );
}

function shareTable(view: ShareView): Html {
  const { layout, ownerName, serverName, connected, levels, displayNames } = view;
  return table(
    'With whom it is shared',
    [
      {
        label: 'Who',
        style: 'name',
        cell: ({ recipient: { kind, name } }) =>
          html`${name}${kind === 'group' && html` <span class="tag">Group</span>`}${kind === 'user' && connected.includes(name) && html` <span class="status good">There now</span>`}${kind === 'user' && displayNames.has(name) && html`<span class="under"><bdi>${displayNames.get(name)}</bdi></span>`}`,
      },
      { label: 'May', cell: ({ scopeNames }) => shareWords(scopeNames) },
      { label: 'Since', cell: ({ createdAt }) => timeElement(createdAt, layout.now) },
      {
        label: 'Actions',
        style: 'end',
        cell: ({ recipient: { kind, name } }) =>
          levels.length > 0 &&
          html`<div class="actions">${actionForm(layout, {
            action: layout.urls.share(ownerName, serverName),
            label: 'Take back',
            accessibleLabel: `Take back the server from ${name}`,
            style: 'small danger',
            fields: { deed: 'revoke', kind, name },
          })}</div>`,
      },
    ],
    view.shares,
  );
}

function paging({ layout, ownerName, serverName, offset, limit, total, shares }: ShareView) {
  if (offset === 0 && total <= limit) return false;
  const urlOf = (at: number) => `${layout.urls.share(ownerName, serverName)}?offset=${at}`;
  return html`<nav class="pages" aria-label="Pages of the list"><span>${offset + 1}–${offset + shares.length} of ${total}</span><div class="actions">
${offset > 0 && html`<a class="button small" href="${urlOf(Math.max(0, offset - limit))}" rel="prev">Previous</a>`}
${offset + shares.length < total && html`<a class="button small" href="${urlOf(offset + limit)}" rel="next">Next</a>`}
</div></nav>`;
}

const levelField = (levels: readonly ShareLevel[]): Html =>
  selectField({
    name: 'level',
    label: 'What they may do',
    choices: levels.map((value) => ({ value, label: shareLevels[value].label })),
  });

function recipientForm(view: ShareView): Html {
  const { layout, ownerName, serverName, levels, recipients, typed } = view;
  if (recipients.length === 0) {
    return html`<p class="soft">You may not name users or groups of this hub. Make a link below and send it to those who should have it.</p>`;
  }
  const words = { user: 'A user', group: 'A group' } as const;
  return html`<form class="fields" method="post" action="${layout.urls.share(ownerName, serverName)}">
${csrfField(layout)}${hiddenFields({ deed: 'grant', ...(recipients.length === 1 && { kind: recipients[0] }) })}
${recipients.length > 1 && selectField({ name: 'kind', label: 'With', choices: recipients.map((value) => ({ value, label: words[value] })) })}
${textField({
  name: 'name',
  label: recipients.length > 1 ? 'Name' : `Name of the ${recipients[0]}`,
  value: typed?.name,
  problem: typed?.problem,
  autocomplete: 'off',
  isLiteral: true,
  maxLength: 255,
})}
${levelField(levels)}
<div class="actions"><button class="button primary">Share</button></div>
</form>`;
}

function linkTable({ layout, ownerName, serverName, links, levels }: ShareView): Html {
  const { now } = layout;
  return table(
    'Links that share it',
    [
      {
        label: 'Made',
        style: 'name',
        cell: ({ createdAt }) => html`Made ${timeElement(createdAt, now)}`,
      },
      { label: 'Gives', cell: ({ scopeNames }) => shareWords(scopeNames) },
      { label: 'Expires', cell: ({ expiresAt }) => timeElement(expiresAt, now) },
      {
        label: 'Accepted',
        cell: ({ exchangeCount, lastExchangedAt }) =>
          lastExchangedAt === undefined
            ? html`<span class="soft">Never</span>`
            : html`${formatCount(exchangeCount, 'time')}, last ${timeElement(lastExchangedAt, now)}`,
      },
      {
        label: 'Actions',
        style: 'end',
        cell: ({ id, createdAt }) =>
          levels.length > 0 &&
          html`<div class="actions">${actionForm(layout, {
            action: layout.urls.share(ownerName, serverName),
            label: 'Delete',
            accessibleLabel: `Delete the link made at ${createdAt.toISOString()}`,
            style: 'small danger',
            fields: { deed: 'delete_link', id },
          })}</div>`,
      },
    ],
    links,
  );
}

function linkForm({ layout, ownerName, serverName, levels, recipients }: ShareView): Html {
  return html`<form class="fields" method="post" action="${layout.urls.share(ownerName, serverName)}">
${csrfField(layout)}${hiddenFields({ deed: 'create_link' })}
${selectField({ name: 'expires_in', label: 'How long should it work?', choices: lifetimes, value: String(day) })}
${selectField({
  name: 'link_level',
  label: 'What it gives',
  choices: levels.map((value) => ({ value, label: shareLevels[value].label })),
})}
<div class="actions"><button class="button${recipients.length === 0 && ' primary'}">Make a link</button></div>
</form>`;
}
