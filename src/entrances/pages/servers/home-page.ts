import { type Phrase, text } from '../../../platform/texts/text.ts';
import type { BudgetState } from '../../../workloads/usage/budget.ts';
import { customFragment } from '../elements/brand.ts';
import { budgetWarnings } from '../elements/budget-list.ts';
import { actionForm } from '../elements/form.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { loadSparks } from '../elements/load-plots.ts';
import { notice } from '../elements/notice.ts';
import { timeElement } from '../elements/quantity.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { onShelves, type ServiceLink, serviceCards } from '../services/service-list.ts';
import { servicesSearch } from '../services/services-page.ts';
import { type SharedServers, sharedServersSection } from '../sharing/shared-servers.ts';
import { type FirstRunView, firstRunPanel } from './first-run-panel.ts';
import { type NamedServers, newServerForm } from './named-servers.ts';
import {
  comingStopSentence,
  extendForm,
  isAboutToStop,
  isChanging,
  limitSentence,
  rescueSentence,
  type ServerSummary,
  serverStatus,
  serverTitle,
  unreachableHint,
} from './server-summary.ts';

export interface HomeView {
  /** Those of the reader, and of the profiles of their servers. */
  readonly budgets?: readonly BudgetState[];
  readonly currency?: string;
  readonly layout: FormLayoutProps;
  readonly userName: string;
  /** The default server; undefined when this person may have none. */
  readonly server?: ServerSummary | undefined;
  /** Whether a start first asks for options. */
  readonly hasSpawnOptions: boolean;
  readonly namedServers?: NamedServers | undefined;
  /** Whether a login starts the default server; undefined where that is not to be chosen. */
  readonly startsAtLogin?: boolean | undefined;
  /** Whether the servers can be shared from here. */
  readonly mayShare?: boolean;
  /** Servers of others. */
  readonly shared?: SharedServers | undefined;
  readonly services: readonly ServiceLink[];
  /** Before this one, or in another browser. */
  readonly lastLogin?: { readonly at: Date; readonly address: string | undefined } | undefined;
  /** For the first administrator of a new hub. */
  readonly firstRun?: FirstRunView | undefined;
  /** How long before a time limit stops a server its user is warned. */
  readonly limitWarningSeconds?: number;
}

function customIntro(layout: FormLayoutProps): HtmlValue {
  return customFragment(layout, 'home-intro', {
    around: (intro) => html`<div class="own-part block">${intro}</div>\n`,
  });
}

/** Where a person arrives: the own servers, those that run first, and services to open. */
export function homePage(view: HomeView): Html {
  const { layout, userName, server, namedServers, services, shared } = view;
  const servers = [...(server ? [server] : []), ...(namedServers?.servers ?? [])].toSorted(
    (one, other) => rankOf(one) - rankOf(other),
  );
  const isMoving = isChanging(servers);
  const isLive = isMoving || servers.some((each) => isAboutToStop(view, each));
  // A time limit may stop it while the page stays open.
  const isUp = servers.some(({ state }) => state === 'running' || state === 'unreachable');
  return pageLayout(layout, {
    title: text`Home`,
    place: 'home',
    scripts: isLive || isUp ? ['live-state.js'] : [],
    reloadSeconds: isLive ? (isMoving ? 5 : 30) : undefined,
    body: html`${pageHead(text`Hello, ${layout.user?.displayName ?? userName}`)}
${customIntro(layout)}<div id="servers" data-live-seconds="${isLive ? 3 : 60}">
${budgetWarnings(layout, view.budgets ?? [], view.currency ?? '')}<div class="servers">${servers.map((each, index) => serverCard(view, each, index))}</div>
</div>
${startAtLoginForm(view)}
${namedServers && newServerForm(view, namedServers)}
${view.firstRun !== undefined && firstRunPanel(layout, view.firstRun)}
${shared !== undefined && sharedServersSection(layout, shared)}
${services.length > 0 && servicesSection(view)}
${
  server === undefined &&
  namedServers === undefined &&
  services.length === 0 &&
  (shared?.servers.length ?? 0) === 0
    ? html`<p class="empty">${text`There is nothing for you to open yet. Ask your administrator what this hub offers you.`}</p>`
    : ''
}
${lastLoginLine(view)}`,
  });
}

function startAtLoginForm({ layout, startsAtLogin }: HomeView): HtmlValue {
  if (startsAtLogin === undefined) return false;
  const form = actionForm(layout, {
    action: layout.urls.startAtLogin,
    label: startsAtLogin ? text`No longer` : text`Start it when I log in`,
    ...(startsAtLogin && { accessibleLabel: text`Start my server no longer when I log in` }),
    style: 'small',
    fields: { enabled: String(!startsAtLogin) },
  });
  return html`<div class="row"><span class="soft">${startsAtLogin ? text`Your server starts when you log in.` : text`Your server does not start by itself.`}</span>${form}</div>`;
}

/** What can be opened stands before what must be started. */
const rankOf = ({ state }: ServerSummary): number =>
  state === 'stopped' ? 2 : Number(state === 'failed');

function lastLoginLine({ layout: { urls, now }, lastLogin }: HomeView): HtmlValue {
  if (lastLogin === undefined) return false;
  const { address } = lastLogin;
  const at = timeElement(lastLogin.at, now);
  return html`<p class="block small soft">${address === undefined ? text`Your last login: ${at}.` : text`Your last login: ${at}, from ${address}.`} <a href="${urls.sessions}">${text`Not you? See where you are logged in.`}</a></p>`;
}

/** More are on the page of services. */
const maxServices = 24;

function servicesSection({ layout, services }: HomeView): Html {
  const { urls } = layout;
  const all = services.length;
  return html`<section class="block services" aria-labelledby="services-title"><h2 id="services-title">${text`Services`}</h2>
${servicesSearch(urls, all)}
${serviceCards(layout, onShelves(services).slice(0, maxServices), 3)}
${all > maxServices && html`<p><a href="${urls.services}">${text`All ${all} services`}</a></p>`}
</section>`;
}

function serverCard(view: HomeView, server: ServerSummary, index: number): Html {
  const title = serverTitle(server);
  return html`<section class="panel server" aria-labelledby="server-${index}" data-key="server ${server.name}" data-label="${title}">
<div class="what"><p>${serverStatus(server)}</p><h2 id="server-${index}"><a href="${view.layout.urls.server(server.userName, server.name)}">${title}</a></h2><p>${sentence(view, server)}</p>${loadSparks(server.load)}</div>
<div class="actions">${serverActions(view, server, index === 0)}</div>
${server.failure !== undefined && notice('bad', server.failure)}
${server.isRescue && notice('warn', rescueSentence)}
${isAboutToStop(view, server) && notice('warn', html`${comingStopSentence(server, view.layout.now)}${server.comingStop?.reason === 'max_age' && html` ${text`Save your work; you can start it again after that.`}`}`)}
</section>`;
}

function sentence(view: HomeView, server: ServerSummary): HtmlValue {
  const { now } = view.layout;
  switch (server.state) {
    case 'running':
      return html`${server.startedAt && text`Started ${timeElement(server.startedAt, now)}.`}${server.lastActivityAt && html` ${text`Last used ${timeElement(server.lastActivityAt, now)}.`}`}${!isAboutToStop(view, server) && html` ${comingStopSentence(server, now)}`}`;
    case 'starting':
      return text`Starting. This takes a moment.`;
    case 'stopping':
      return text`It is shutting down and can be started again right after.`;
    case 'unreachable':
      return html`${server.unreachableSince && html`${text`Contact with its machine was lost ${timeElement(server.unreachableSince, now)}.`} `}${unreachableHint}`;
    case 'failed':
      return text`Your server stopped unexpectedly. Your files are safe.`;
    case 'stopped':
      return server.lastActivityAt
        ? html`${limitSentence(server)} ${text`Last used ${timeElement(server.lastActivityAt, now)}. Your files are kept.`}`
        : text`Start your server to open your workspace.`;
  }
}

/** A button is named after its server, but for the one that is there for everyone; a page has one primary action. */
function serverActions(view: HomeView, server: ServerSummary, isFirst: boolean): HtmlValue {
  const { layout } = view;
  const { urls } = layout;
  const { userName, name } = server;
  const title = serverTitle(server);
  const primary = isFirst && ' primary';
  const named = (accessibleLabel: Phrase) => name !== '' && { accessibleLabel };
  const aria = (label: Phrase) => name !== '' && html` aria-label="${label}"`;
  const stop = actionForm(layout, {
    action: urls.stop(userName, name),
    label: text`Stop`,
    ...named(text`Stop ${title}`),
  });
  const share =
    view.mayShare &&
    html`<a class="button" href="${urls.share(userName, name)}"${aria(text`Share ${title}`)}>${text`Share…`}</a>`;
  switch (server.state) {
    case 'running':
      return html`${share}${stop}${isAboutToStop(view, server) && extendForm(layout, server, { label: text`Extend`, ...named(text`${text`Extend`}: ${title}`) })}<a class="button${primary}" href="${server.url}"${aria(text`Open ${title}`)}>${text`Open`}</a>`;
    case 'starting':
      return html`${stop}<a class="button${primary}" href="${urls.spawnPending(userName, name)}"${aria(text`${text`View progress`}: ${title}`)}>${text`View progress`}</a>`;
    case 'unreachable':
      return actionForm(layout, {
        action: urls.stop(userName, name),
        label: text`Discard server`,
        ...named(text`${text`Discard server`}: ${title}`),
      });
    case 'stopping':
      return '';
    case 'failed':
    case 'stopped':
      return html`${name !== '' && html`<a class="button danger" href="${urls.deleteServer(userName, name)}"${aria(text`Delete ${title}`)}>${text`Delete`}</a>`}${server.state === 'failed' && html`<a class="button" href="${urls.server(userName, name)}"${aria(text`${text`View error`}: ${title}`)}>${text`View error`}</a>`}${share}${startActions(view, server, isFirst)}`;
  }
}

/** A start as the last time is one button; without options in its form, the last ones count. */
function startActions(
  { layout, hasSpawnOptions }: HomeView,
  { userName, name, state, lastChoice, ...server }: ServerSummary,
  isFirst: boolean,
): HtmlValue {
  const action = layout.urls.spawn(userName, name);
  const title = serverTitle({ ...server, userName, name });
  const chooses = hasSpawnOptions && lastChoice === undefined && state !== 'failed';
  if (chooses)
    return html`<a class="button${isFirst && ' primary'}" href="${action}"${name !== '' && html` aria-label="${text`Start ${title}`}"`}>${text`Start…`}</a>`;
  const again = lastChoice && text`Start again with ${lastChoice}`;
  const label = again ?? (state === 'failed' ? text`Start again` : text`Start`);
  const start = actionForm(layout, {
    action,
    label,
    ...(isFirst && { style: 'primary' }),
    ...(name !== '' && { accessibleLabel: text`${label}: ${title}` }),
  });
  return html`${hasSpawnOptions && html`<a class="button" href="${action}">${text`Options…`}</a>`}${start}`;
}
