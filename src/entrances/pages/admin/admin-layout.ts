import { type Phrase, text } from '../../../platform/texts/text.ts';
import type { AssetName } from '../assets/assets.ts';
import { pageLayout } from '../elements/layout.ts';
import type { AdminTab, LayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';

/** A page of the administration, with its parts beside it. */
export function adminLayout(
  layout: LayoutProps,
  page: {
    readonly title: Phrase;
    readonly tab: AdminTab;
    readonly body: Html;
    readonly scripts?: readonly AssetName[];
    readonly reloadSeconds?: number | undefined;
  },
): Html {
  const { urls, user } = layout;
  const tab = ([name, label]: (typeof parts)[number][1][number]): Html =>
    html`<a href="${tabUrl(urls, name)}"${name === page.tab && html` aria-current="page"`}>${label}</a>`;
  const groups = parts.map(([title, tabs]) => {
    const shown = tabs.filter(([name]) => user?.adminTabs?.includes(name) ?? true);
    if (shown.length === 0 || title === undefined) return shown.map(tab);
    return html`<div role="group" aria-label="${title}"><b aria-hidden="true">${title}</b>${shown.map(tab)}</div>`;
  });
  return pageLayout(layout, {
    title: page.title,
    place: 'admin',
    scripts: page.scripts ?? [],
    reloadSeconds: page.reloadSeconds,
    body: html`<div class="admin"><nav class="tabs" aria-label="${text`Administration`}">${groups}</nav>
<div class="admin-page">${page.body}</div></div>`,
  });
}

/** The parts of the administration by what they are about. */
const parts: readonly (readonly [Phrase | undefined, readonly (readonly [AdminTab, Phrase])[]])[] =
  [
    [undefined, [['overview', text`Overview`]]],
    [
      text`People`,
      [
        ['users', text`Users`],
        ['groups', text`Groups`],
        ['roles', text`Roles`],
      ],
    ],
    [
      text`Workloads`,
      [
        ['servers', text`Servers`],
        ['services', text`Services`],
        ['usage', text`Use`],
      ],
    ],
    [
      text`Security`,
      [
        ['activity', text`Activity`],
        ['lockouts', text`Locked out`],
        ['keys', text`Keys`],
      ],
    ],
    [
      text`Hub`,
      [
        ['announcements', text`Announcements`],
        ['instances', text`Instances`],
      ],
    ],
  ];

/** The same, each with its address, as far as the reader may see them. */
export function adminTabs({ urls, user }: LayoutProps) {
  return parts
    .flatMap(([, tabs]) => tabs)
    .filter(([name]) => user?.adminTabs?.includes(name) ?? true)
    .map(([name, label]) => ({ label, url: tabUrl(urls, name) }));
}

function tabUrl(urls: LayoutProps['urls'], tab: AdminTab): string {
  const urlByTab = {
    overview: urls.admin,
    users: urls.adminUsers,
    groups: urls.adminGroups,
    roles: urls.adminRoles,
    servers: urls.adminServers,
    services: urls.adminServices,
    usage: urls.adminUsage,
    instances: urls.adminInstances,
    lockouts: urls.adminLockouts,
    keys: urls.adminKeys,
    announcements: urls.adminAnnouncements,
    activity: urls.adminActivity,
  } as const satisfies Record<AdminTab, string>;
  return urlByTab[tab];
}
