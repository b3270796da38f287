import { type Phrase, text } from '../../../platform/texts/text.ts';
import type { AssetName } from '../assets/assets.ts';
import { pageLayout } from '../elements/layout.ts';
import type { AdminTab, LayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';

/** A page of the administration, with its parts as tabs. */
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
  const words = [
    ['users', text`Users`],
    ['groups', text`Groups`],
    ['roles', text`Roles`],
    ['services', text`Services`],
    ['instances', text`Instances`],
    ['lockouts', text`Lock-outs`],
    ['announcements', text`Announcements`],
    ['activity', text`Activity`],
  ] as const;
  const tabs = words.filter(([name]) => user?.adminTabs?.includes(name) ?? true);
  return pageLayout(layout, {
    title: page.title,
    place: 'admin',
    scripts: page.scripts ?? [],
    reloadSeconds: page.reloadSeconds,
    body: html`<nav class="tabs" aria-label="${text`Administration`}">${tabs.map(
      ([name, label]) =>
        html`<a href="${adminTabUrl(urls, name)}"${name === page.tab && html` aria-current="page"`}>${label}</a>`,
    )}</nav>
${page.body}`,
  });
}

/** Where a part of the administration begins. */
export function adminTabUrl(urls: LayoutProps['urls'], tab: AdminTab): string {
  const urlByTab = {
    users: urls.admin,
    groups: urls.adminGroups,
    roles: urls.adminRoles,
    services: urls.adminServices,
    instances: urls.adminInstances,
    lockouts: urls.adminLockouts,
    announcements: urls.adminAnnouncements,
    activity: urls.adminActivity,
  } as const satisfies Record<AdminTab, string>;
  return urlByTab[tab];
}
