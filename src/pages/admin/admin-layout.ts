import type { AssetName } from '../assets/assets.ts';
import { layout } from '../elements/layout.ts';
import type { PageFrame } from '../elements/page-frame.ts';
import { type Html, html } from '../html.ts';

export type AdminTab = 'users' | 'groups' | 'services' | 'lockouts';

/** A page of the administration, with its four parts as tabs. */
export function adminLayout(
  frame: PageFrame,
  page: {
    readonly title: string;
    readonly tab: AdminTab;
    readonly body: Html;
    readonly scripts?: readonly AssetName[];
  },
): Html {
  const { urls } = frame;
  const tabs = [
    ['users', 'Users', urls.admin],
    ['groups', 'Groups', urls.adminGroups],
    ['services', 'Services', urls.adminServices],
    ['lockouts', 'Lock-outs', urls.adminLockouts],
  ] as const;
  return layout(frame, {
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
