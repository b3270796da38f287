import { text } from '../../../platform/texts/text.ts';
import { actionForm } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { table } from '../elements/table.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { type ServerSummary, serverStatus } from '../servers/server-summary.ts';
import { shareLabels } from './share-labels.ts';

/** A server that others share with the viewer. */
export interface SharedServer {
  readonly server: ServerSummary;
  readonly scopeNames: readonly string[];
  /** Groups by which it is shared. */
  readonly groupNames: readonly string[];
  /** Whether it is shared with the user too, and not by groups alone. */
  readonly isOwnShare: boolean;
  readonly mayOpen: boolean;
  readonly mayStart: boolean;
}

export interface SharedServers {
  readonly servers: readonly SharedServer[];
  /** Whether there are more than these. */
  readonly isCut: boolean;
}

/** The part of the home page with the servers that others share with the viewer. */
export function sharedServersSection(layout: FormLayoutProps, shared: SharedServers): HtmlValue {
  if (shared.servers.length === 0) return false;
  return html`<section class="block" id="shared"><h2>${text`Shared with you`}</h2>
${table(
  text`Servers shared with you`,
  [
    {
      label: text`Owner`,
      style: 'name',
      cell: ({ server, groupNames, isOwnShare }) =>
        html`${server.userName}${groupNames.length > 0 && !isOwnShare && html`<span class="under">${text`By group ${groupNames.join(', ')}`}</span>`}`,
    },
    {
      label: text`Server`,
      cell: ({ server }) =>
        server.displayName ??
        (server.name || html`<span class="soft">${text`Default server`}</span>`),
    },
    { label: text`State`, cell: ({ server }) => serverStatus(server) },
    { label: text`You may`, cell: ({ scopeNames }) => shareLabels(scopeNames) },
    {
      label: text`Actions`,
      style: 'end',
      cell: (each) => html`<div class="actions">${actionsOf(layout, each)}</div>`,
    },
  ],
  shared.servers,
)}
${shared.isCut && html`<p class="small soft">${text`There are more; these are the first.`}</p>`}
</section>`;
}

function actionsOf(layout: FormLayoutProps, shared: SharedServer): HtmlValue {
  const { server, isOwnShare } = shared;
  const { userName, name } = server;
  return html`${
    isOwnShare &&
    actionForm(layout, {
      action: layout.urls.leaveShared,
      label: text`Leave`,
      accessibleLabel:
        name === ''
          ? text`Leave the server of ${userName}`
          : text`Leave the server ${name} of ${userName}`,
      style: 'small danger',
      fields: { owner: userName, server: name },
    })
  }${openOrStart(layout, shared)}`;
}

function openOrStart(
  layout: FormLayoutProps,
  { server, mayOpen, mayStart }: SharedServer,
): Html | false {
  const { userName, name, state, url } = server;
  const isDefault = name === '';
  if (mayOpen && (state === 'running' || state === 'starting')) {
    return html`<a class="button small" href="${url}" aria-label="${isDefault ? text`Open the server of ${userName}` : text`Open ${name} of ${userName}`}">${text`Open`}</a>`;
  }
  if (mayStart && (state === 'stopped' || state === 'failed')) {
    return html`<a class="button small" href="${layout.urls.spawn(userName, name)}" aria-label="${isDefault ? text`Start the server of ${userName}` : text`Start ${name} of ${userName}`}">${text`Start…`}</a>`;
  }
  return false;
}
