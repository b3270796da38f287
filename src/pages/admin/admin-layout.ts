import type { AssetName } from '../assets/assets.ts';
import { pageLayout } from '../elements/layout.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { type Html, html } from '../html.ts';

export type AdminTab =
  | 'users'
  | 'groups'
  | 'roles'
  | 'services'
  | 'instances'
  | 'lockouts'
  | 'activity';

/** A page of the administration, with its parts as tabs. */
export function adminLayout(
  layout: LayoutProps,
  page: {
    readonly title: string;
    readonly tab: AdminTab;
    readonly body: Html;
    readonly scripts?: readonly AssetName[];
  },
): Html {
  const { urls } = layout;
  const tabs = [
    ['users', 'Users', urls.admin],
    ['groups', 'Groups', urls.adminGroups],
    ['roles', 'Roles', urls.adminRoles],
    ['services', 'Services', urls.adminServices],
    ['instances', 'Instances', urls.adminInstances],
    ['lockouts', 'Lock-outs', urls.adminLockouts],
    ['activity', 'Activity', urls.adminActivity],
  ] as const;
  return pageLayout(layout, {
    title: page.title,
    place: 'admin',
    scripts: page.scripts ?? [],
    body: html`<nav class="tabs" aria-label="Administration">${tabs.map(
      ([name, label, url]) =>
        html`<a href="${url}"${name === page.tab && html` aria-current="page"`}>${label}</a>`,
    )}</nav>
${page.body}`,
  });
}
