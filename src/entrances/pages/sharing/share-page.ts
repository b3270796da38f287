import { exactTime, message, type Phrase, text } from '../../../platform/texts/text.ts';
import type { Share, ShareCode, ShareRecipient } from '../../../workloads/sharing/share.ts';
import {
  actionForm,
  csrfField,
  hiddenFields,
  lifetimes,
  selectField,
  textField,
} from '../elements/form.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { notice } from '../elements/notice.ts';
import { timeElement } from '../elements/quantity.ts';
import { copyableText } from '../elements/secret.ts';
import { type PagingView, paging, table } from '../elements/table.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { type ShareLevel, shareLabels, shareLevels } from './share-labels.ts';

export interface ShareView {
  readonly layout: FormLayoutProps;
  readonly ownerName: string;
  /** Empty for the default server. */
  readonly serverName: string;
  readonly shares: readonly Pick<Share, 'recipient' | 'scopeNames' | 'createdAt'>[];
  readonly paging: PagingView;
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
  readonly typed?: { readonly name: string; readonly problem: Phrase } | undefined;
}

/** With whom a server is shared, and the forms that share it and take it back. */
export function sharePage(view: ShareView): Html {
  const { layout, levels, newLink } = view;
  const mayShare = levels.length > 0;
  return pageLayout(layout, {
    title: titleOf(view),
    place: 'home',
    scripts: newLink === undefined ? [] : ['copy-button.js'],
    body: html`${pageHead(titleOf(view), leadOf(view))}
${newLink !== undefined && newLinkPanel(newLink)}
${!mayShare && notice('warn', text`You may not share servers on this hub. An administrator can allow it with the scope shares!user in the role of users.`)}
<section class="block"><h2>${text`Who can open it`}</h2>
${view.shares.length === 0 ? html`<p class="soft">${text`No one else.`}</p>` : html`${shareTable(view)}${paging(view.paging)}`}
${whoElseIsThere(view)}
</section>
${mayShare && html`<section class="block"><h2>${text`Share with someone`}</h2>${recipientForm(view)}</section>`}
<section class="block"><h2>${text`Links`}</h2>
<p class="soft">${text`Every user of this hub who has the link can accept it until it expires. Deleting a link takes nothing back from those who have accepted it.`}</p>
${mayShare ? linkForm(view) : view.links.length === 0 && html`<p class="soft">${text`There are none.`}</p>`}
</section>
${view.links.length > 0 && html`<section class="block"><h2 class="visually-hidden">${text`Active links`}</h2>${linkTable(view)}</section>`}`,
  });
}

function titleOf({ layout, ownerName, serverName }: ShareView): Phrase {
  const isOwn = layout.user?.name === ownerName;
  if (serverName === '') {
    return isOwn ? text`Share your server` : text`Share the server of ${ownerName}`;
  }
  return isOwn ? text`Share ${serverName}` : text`Share ${serverName} of ${ownerName}`;
}

function leadOf({ layout, ownerName }: ShareView): Phrase {
  return layout.user?.name === ownerName
    ? text`Users who open this server work in it with your files and rights. Share it only with people you trust.`
    : text`Users who open this server work in it with the files and rights of ${ownerName}. Share it only with people you trust.`;
}

function newLinkPanel(link: string): Html {
  return html`<section class="panel once stack page-notice" aria-labelledby="new-link"><h2 id="new-link">${text`Your new link`}</h2>
<p>${text`Copy it now and send it to those who should have it: it is not shown again.`}</p>
${copyableText(link, text`New link`)}</section>`;
}

/** Those who are there by a group; the others are marked in the list. */
function whoElseIsThere({ connected, shares }: ShareView): HtmlValue {
  const others = connected.filter(
    (name) => !shares.some(({ recipient }) => recipient.kind === 'user' && recipient.name === name),
  );
  return (
    others.length > 0 &&
    html`<p class="small"><span class="status good">${text`There now`}</span> ${others.join(', ')}</p>`
  );
}

function shareTable(view: ShareView): Html {
  const { layout, ownerName, serverName, connected, levels, displayNames } = view;
  return table(
    text`People with access`,
    [
      {
        label: text`Who`,
        style: 'name',
        cell: ({ recipient: { kind, name } }) =>
          html`${name}${kind === 'group' && html` <span class="tag">${text`Group`}</span>`}${kind === 'user' && connected.includes(name) && html` <span class="status good">${text`There now`}</span>`}${kind === 'user' && displayNames.has(name) && html`<span class="under"><bdi>${displayNames.get(name)}</bdi></span>`}`,
      },
      { label: text`Access`, cell: ({ scopeNames }) => shareLabels(scopeNames) },
      { label: text`Since`, cell: ({ createdAt }) => timeElement(createdAt, layout.now) },
      {
        label: text`Actions`,
        style: 'end',
        cell: ({ recipient: { kind, name } }) =>
          levels.length > 0 &&
          html`<div class="actions">${actionForm(layout, {
            action: layout.urls.endShare(ownerName, serverName),
            label: text`Remove access`,
            accessibleLabel: text`${text`Remove access`}: ${name}`,
            style: 'small danger',
            fields: { kind, name },
          })}</div>`,
      },
    ],
    view.shares,
  );
}

const levelField = (levels: readonly ShareLevel[]): Html =>
  selectField({
    name: 'level',
    label: text`What they may do`,
    choices: levels.map((value) => ({ value, label: shareLevels[value].label })),
  });

function recipientForm(view: ShareView): Html {
  const { layout, ownerName, serverName, levels, recipients, typed } = view;
  if (recipients.length === 0) {
    return html`<p class="soft">${text`You may not name users or groups of this hub. Make a link below and send it to those who should have it.`}</p>`;
  }
  const words = { user: text`A user`, group: text`A group` } as const;
  return html`<form class="fields" method="post" action="${layout.urls.share(ownerName, serverName)}">
${csrfField(layout)}${hiddenFields({ kind: recipients.length === 1 ? recipients[0] : undefined })}
${recipients.length > 1 && selectField({ name: 'kind', label: text`With`, choices: recipients.map((value) => ({ value, label: words[value] })) })}
${textField({
  name: 'name',
  label:
    recipients.length > 1
      ? text`Name`
      : recipients[0] === 'group'
        ? text`Name of the group`
        : text`Name of the user`,
  value: typed?.name,
  problem: typed?.problem,
  autocomplete: 'off',
  isLiteral: true,
  maxLength: 255,
})}
${levelField(levels)}
<div class="actions"><button class="button primary">${text`Share`}</button></div>
</form>`;
}

function linkTable({ layout, ownerName, serverName, links, levels }: ShareView): Html {
  const { now } = layout;
  return table(
    text`Share links`,
    [
      {
        label: text`Made`,
        style: 'name',
        cell: ({ createdAt }) => text`Made ${timeElement(createdAt, now)}`,
      },
      { label: text`Gives`, cell: ({ scopeNames }) => shareLabels(scopeNames) },
      { label: text`Expires`, cell: ({ expiresAt }) => timeElement(expiresAt, now) },
      {
        label: text`Accepted`,
        cell: ({ exchangeCount, lastExchangedAt }) =>
          lastExchangedAt === undefined
            ? timeElement(undefined, now)
            : message('{count, plural, one {# time, last {when}} other {# times, last {when}}}', {
                count: exchangeCount,
                when: timeElement(lastExchangedAt, now),
              }),
      },
      {
        label: text`Actions`,
        style: 'end',
        cell: ({ id, createdAt }) =>
          levels.length > 0 &&
          html`<div class="actions">${actionForm(layout, {
            action: layout.urls.deleteShareLink(ownerName, serverName),
            label: text`Delete`,
            accessibleLabel: text`Delete the link made at ${exactTime(createdAt)}`,
            style: 'small danger',
            fields: { id },
          })}</div>`,
      },
    ],
    links,
  );
}

function linkForm({ layout, ownerName, serverName, levels, recipients }: ShareView): Html {
  return html`<form class="fields" method="post" action="${layout.urls.makeShareLink(ownerName, serverName)}">
${csrfField(layout)}
${selectField({ name: 'expires_in', label: text`How long should it work?`, choices: lifetimes, value: lifetimes[1]?.value })}
${selectField({
  name: 'link_level',
  label: text`What it gives`,
  choices: levels.map((value) => ({ value, label: shareLevels[value].label })),
})}
<div class="actions"><button class="button${recipients.length === 0 && ' primary'}">${text`Make a link`}</button></div>
</form>`;
}
