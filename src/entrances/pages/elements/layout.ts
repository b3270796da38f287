import { listOf, type Phrase, text, written } from '../../../platform/texts/text.ts';
import type { AssetName } from '../assets/assets.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { themes } from '../preferences.ts';
import { brand, brandingOf, icon, initialsOf, siteFooter } from './brand.ts';
import { csrfField, hiddenFields } from './form.ts';
import type { AdminTab, FormLayoutProps, LayoutProps, PageUser } from './layout-props.ts';
import { linkedText } from './linked-text.ts';
import { notice } from './notice.ts';

/** The place of a page in the navigation. */
export type NavigationPlace = 'home' | 'usage' | 'services' | 'admin' | 'account';

export interface PageContent {
  readonly title: Phrase;
  readonly body: Html;
  readonly place?: NavigationPlace;
  readonly scripts?: readonly AssetName[];
  /** Seconds after which a browser without scripts reloads the page. */
  readonly reloadSeconds?: number | undefined;
}

/** A page with header, navigation and one column. */
export function pageLayout(layout: LayoutProps, page: PageContent): Html {
  const own = layout.user === undefined ? [] : (['palette.js'] as const);
  return html`${head(layout, { ...page, scripts: [...(page.scripts ?? []), ...own] })}
<body>
<a class="skip" href="#content">${text`Skip to the content`}</a>
<header class="site-header"><div class="inner">
<a class="brand" href="${layout.urls.home}">${brand(layout, 24)}</a>
${layout.user !== undefined && html`${navigation(layout, layout.user, page.place)}${palette(layout)}${userMenu(layout, layout.user, page.place)}`}
</div></header>
<main class="inner" id="content">
${accountTabs(layout, page.place)}${notLive(page)}${announced(layout)}${pageNotice(layout)}${passedOver(layout)}${page.body}
</main>
${siteFooter(layout)}</body>
</html>
`;
}

/** A page with one thing to do: a narrow column below the hub's mark, no navigation. */
export function focusLayout(layout: LayoutProps, page: PageContent): Html {
  const { csrfToken, address } = layout;
  return html`${head(layout, page)}
<body class="focus">
<main id="content">
<a class="brand" href="${layout.urls.home}">${brand(layout, 40)}</a>
${notLive(page)}${announced(layout)}${pageNotice(layout)}${passedOver(layout)}${page.body}${csrfToken !== undefined && address !== undefined && html`\n${languageForm({ ...layout, csrfToken })}`}
</main>
${siteFooter(layout)}</body>
</html>
`;
}

/** The title of a page, what it is for, and its primary action. */
export function pageHead(title: HtmlValue, lead?: HtmlValue, action?: HtmlValue): Html {
  return html`<div class="page-head"><div class="titles"><h1>${title}</h1>${lead && html`<p class="lead">${lead}</p>`}</div>${action}</div>`;
}

const colorSchemes = { system: 'light dark', light: 'light', dark: 'dark' } as const;

function head(layout: LayoutProps, page: PageContent): Html {
  const { assets } = layout;
  const { favicon, stylesheet } = brandingOf(layout);
  return html`<!doctype html>
<html lang="${written(({ tag }) => tag)}" dir="${written(({ direction }) => direction)}"${layout.theme !== undefined && layout.theme !== 'system' && html` data-theme="${layout.theme}"`}>
<head>
<meta charset="utf-8">
<title>${page.title} · ${layout.hubTitle}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="${colorSchemes[layout.theme ?? 'system']}">
<meta name="robots" content="noindex">${layout.csrfToken !== undefined && html`\n<meta name="csrf-token" content="${layout.csrfToken}">`}
<link rel="icon" href="${assets.url(favicon ?? 'favicon.svg')}"${(favicon ?? '.svg').endsWith('.svg') && html` type="image/svg+xml"`}>
<link rel="stylesheet" href="${assets.url('site.css')}">${stylesheet !== undefined && html`\n<link rel="stylesheet" href="${assets.url(stylesheet)}">`}
${[...(page.scripts ?? []), ...countdown(layout)].map((name) => html`<script type="module" src="${assets.url(name)}"></script>\n`)}${page.reloadSeconds !== undefined && html`<noscript><meta http-equiv="refresh" content="${page.reloadSeconds}"></noscript>\n`}</head>`;
}

function navigation(layout: LayoutProps, user: PageUser, place: NavigationPlace | undefined): Html {
  const { urls } = layout;
  const entries: readonly (readonly [NavigationPlace, Phrase, string])[] = [
    ['home', text`Home`, urls.home],
    ['services', text`Services`, urls.services],
    ...(user.mayAdminister ? ([['admin', text`Admin`, urls.admin]] as const) : []),
  ];
  return html`<nav class="site-nav" aria-label="${text`Main`}"><ul>${entries.map(
    ([name, label, url]) => html`<li>${placeLink(label, url, name === place)}</li>`,
  )}</ul></nav>`;
}

/** A link to the search, in whose place scripts open a dialog. */
function palette({ urls }: LayoutProps): Html {
  return html`<a class="user-button icon-button" id="palette-opener" href="${urls.search}" aria-label="${text`Search`}" aria-keyshortcuts="/ Control+K Meta+K" data-hint="${text`Type a name or an action`}" data-nothing="${text`Nothing found.`}">${icon('search')}</a>`;
}

function placeLink(label: Phrase, url: string, isHere: boolean): Html {
  return html`<a href="${url}"${isHere && html` aria-current="page"`}>${label}</a>`;
}

const partsOfAccount = [
  ['account', text`Account`],
  ['sessions', text`Sessions`],
  ['tokens', text`Tokens`],
  ['usage', text`Your use`],
] as const;

/** All that is about the reader: the page of the account with its parts, and what was used. */
function accountTabs({ urls }: LayoutProps, place: NavigationPlace | undefined): HtmlValue {
  if (!partsOfAccount.some(([name]) => name === place)) return false;
  return html`<nav class="tabs" aria-label="${text`Account`}">${partsOfAccount.map(
    ([name, label]) => placeLink(label, urls[name], name === place),
  )}</nav>\n`;
}

/** Browsers tell of a button with a popover whether that is open, and close it by Escape. */
function userMenu(layout: LayoutProps, user: PageUser, place: NavigationPlace | undefined): Html {
  const { urls, csrfToken } = layout;
  const { name, displayName } = user;
  const shownName = displayName ?? name;
  return html`<button class="user-button" type="button" popovertarget="user-menu"><b class="initial" aria-hidden="true">${initialsOf(name, displayName)}</b><span dir="auto">${shownName}</span><span class="visually-hidden">, ${text`your account`}</span>${icon('caret', 16)}</button>
<div class="user-menu" id="user-menu" popover>
<p>${text`Logged in as ${userLabel(name, displayName)}`}</p>
${placeLink(
  text`Account`,
  urls.account,
  partsOfAccount.some(([name]) => name === place),
)}
${csrfToken !== undefined && html`${themeForm({ ...layout, csrfToken })}${languageForm({ ...layout, csrfToken })}`}
${
  csrfToken === undefined
    ? html`<a href="${urls.logout}">${text`Log out`}</a>`
    : html`<form method="post" action="${urls.logout}">${csrfField({ ...layout, csrfToken })}<button>${text`Log out`}</button></form>`
}
</div>`;
}

const themeNames = { system: text`System`, light: text`Light`, dark: text`Dark` } as const;

function themeForm(layout: FormLayoutProps): Html {
  const { urls, theme: chosen = 'system', address } = layout;
  return html`<form class="themes" method="post" action="${urls.preferences}">${csrfField(layout)}${hiddenFields({ return_to: address })}<fieldset><legend>${text`Theme`}</legend><div>${themes.map(
    (theme) =>
      html`<button name="theme" value="${theme}" aria-pressed="${String(theme === chosen)}">${themeNames[theme]}</button>`,
  )}</div></fieldset></form>`;
}

/** Offers the languages, each by its own name, where there is more than one. */
function languageForm(layout: FormLayoutProps): HtmlValue {
  const { urls, languages = [], address } = layout;
  if (languages.length < 2) return false;
  return html`<form class="themes languages" method="post" action="${urls.preferences}">${csrfField(layout)}${hiddenFields({ return_to: address })}<fieldset><legend>${text`Language`}</legend><div>${languages.map(
    ({ tag, name, isCurrent }) =>
      html`<button name="language" value="${tag}" lang="${tag}" aria-pressed="${String(isCurrent)}">${name}</button>`,
  )}</div></fieldset></form>`;
}

/** Where `live-state.js` says what has changed, and that the page no longer follows what happens. */
function notLive({ scripts = [] }: PageContent): HtmlValue {
  return (
    scripts.includes('live-state.js') &&
    html`<p class="not-live" id="not-live" role="status" data-silent="${text`The hub does not answer: what this page shows may be out of date.`}" data-held="${text`You may have been logged out. What you typed stays here: send it, and log in again when you are asked.`}"></p><p class="visually-hidden" id="spoken" role="status"></p>\n`
  );
}

function countdown({ announcements = [] }: LayoutProps): AssetName[] {
  return announcements.some(({ countsDown }) => countsDown) ? ['countdown.js'] : [];
}

function announced({ announcements = [] }: LayoutProps): HtmlValue {
  return announcements.map(
    ({ rule, text: own, level }) =>
      html`<div class="page-notice announcement">${notice(level === 'info' ? 'info' : 'warn', html`${rule}${rule !== undefined && own !== '' && '\n'}${linkedText(own)}`)}</div>\n`,
  );
}

function pageNotice(layout: LayoutProps): HtmlValue {
  return (
    layout.notice &&
    html`<div class="page-notice outcome">${notice(layout.notice.kind, layout.notice.text)}</div>\n`
  );
}

/** A mistyped bookmark must not look like one whose filter found everything. */
function passedOver({ passedOver: asked }: LayoutProps): HtmlValue {
  if (asked === undefined) return false;
  const { names, meant } = asked;
  const listed = (each: readonly string[]) =>
    listOf(each.map((name) => html`<code>${name}</code>`));
  return html`<div class="page-notice">${notice(
    'warn',
    html`${text`The address asks for ${listed(names)}, which this page doesn’t know and ignores.`}${
      meant && html` <a href="${meant.url}">${text`Did you mean ${listed(meant.names)}?`}</a>`
    }`,
  )}</div>\n`;
}

/**
 * The display name with the user name, which alone tells users apart: who likes may be called as another. Names in
 * another direction do not turn what stands beside them.
 */
function userLabel(name: string, displayName: string | undefined): Html {
  return displayName === undefined
    ? html`<b>${name}</b>`
    : html`<b><bdi>${displayName}</bdi></b> (${name})`;
}

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
