import type { LoadReport } from '../../../cluster/instances/load-reader.ts';
import type { LoadSpan } from '../../../platform/metrics/load-history.ts';
import { type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import type { HomeSpace } from '../../../plugin/host/spawner.ts';
import type { ServerFailure } from '../../../workloads/servers/server.ts';
import type { ServerSetup } from '../../../workloads/servers/server-setup.ts';
import type { BudgetState } from '../../../workloads/usage/budget.ts';
import { adminLink } from '../elements/admin-link.ts';
import { budgetWarnings } from '../elements/budget-list.ts';
import { actionForm } from '../elements/form.ts';
import { pageHead, pageLayout } from '../elements/layout.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { type LiveOutputView, liveOutput } from '../elements/live-output.ts';
import { loadSection, spanQuery } from '../elements/load-plots.ts';
import { notice } from '../elements/notice.ts';
import { formatBytes, formatCpu, formatNumber, timeElement } from '../elements/quantity.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import {
  comingStopSentence,
  extendForm,
  isChanging,
  keepForm,
  limitSentence,
  outputBlock,
  rescueSentence,
  type ServerSummary,
  serverStatus,
  serverTitle,
  unreachableHint,
} from './server-summary.ts';

export interface ServerPageView {
  readonly layout: FormLayoutProps;
  readonly server: ServerSummary;
  readonly setup: ServerSetup;
  /** Where it runs, for administrators: what its spawner and the hub know it by. */
  readonly place: readonly { readonly label: Phrase; readonly value: HtmlValue }[];
  /** The last one, until a start goes well. */
  readonly lastFailure?: ServerFailure | undefined;
  readonly load: LoadReport;
  readonly span: LoadSpan;
  /** Cores from which on a server counts as used; 0 where they are not looked at. */
  readonly idleCores: number;
  /** Notebooks or kernels that calculate, with empty names for who may not know them. */
  readonly busyKernels?: readonly string[] | undefined;
  /** For how long its user may keep it running though it is idle; 0 for not at all. */
  readonly maxKeptSeconds: number;
  /** Undefined where it is not known. */
  readonly homeSpace?: HomeSpace | undefined;
  /** Of its user, where that is who looks. */
  readonly budgets?: readonly BudgetState[];
  readonly currency?: string;
  /** What it writes; undefined for who may not open it. */
  readonly output?: LiveOutputView | undefined;
  readonly hasSpawnOptions: boolean;
  /** Whether there are options of the last time. */
  readonly hasLastOptions: boolean;
  readonly may: {
    readonly open: boolean;
    readonly start: boolean;
    readonly stop: boolean;
    readonly share: boolean;
    /** Keep it when it is about to be stopped for being idle. */
    readonly extend: boolean;
  };
}

/** Everything there is to know of one server, for its owner and for administrators. */
export function serverPage(view: ServerPageView): Html {
  const { layout, server, lastFailure, output } = view;
  const { urls, user } = layout;
  const { userName, name } = server;
  const isOwn = user?.name === userName;
  const title = serverTitle(server, user?.name);
  const isMoving = isChanging([server]);
  return pageLayout(layout, {
    // That of a default server has the name of its owner.
    title: isOwn || server.name === '' ? title : text`${title}, ${userName}`,
    place: isOwn ? 'home' : 'admin',
    scripts: output === undefined ? ['live-state.js'] : ['live-state.js', 'live-output.js'],
    reloadSeconds: isMoving ? 5 : undefined,
    body: html`<div id="server" data-live-seconds="${isMoving ? 3 : 10}">
${pageHead(title, isOwn ? undefined : ownerOf(view), actions(view))}
<p class="row">${serverStatus(server)}${since(view)}</p>
${server.state === 'unreachable' && html`<p class="soft">${unreachableHint}</p>`}
${server.isRescue && notice('warn', rescueSentence)}
${limits(view)}
${budgetWarnings(layout, view.budgets ?? [], view.currency ?? '')}
${lastFailure !== undefined && failureSection(view, lastFailure)}
<dl class="facts wide">${facts(view)}</dl>
${loadSection({
  report: view.load,
  span: view.span,
  urlOf: (span) => urls.server(userName, name) + spanQuery(span),
  limits: view.setup.limits,
})}
</div>
${output !== undefined && liveOutput(output)}`,
  });
}

/** Which time limit will stop it, or has stopped it. */
function limits(view: ServerPageView): HtmlValue {
  const { layout, server, may } = view;
  if (server.pausedAt !== undefined) {
    return html`<p class="soft">${comingStopSentence(server, layout.now)}</p>`;
  }
  if (server.comingStop !== undefined) {
    const { userName, name, keptUntil } = server;
    return html`<div class="row"><p class="soft">${keptUntil && html`${text`It is kept running, used or not; that ends ${timeElement(keptUntil, layout.now)}.`} `}${comingStopSentence(server, layout.now)}${server.comingStop.reason === 'idle_timeout' && html` ${workSentence(view)}`}</p>${
      may.extend &&
      extendForm(layout, server, {
        label: text`Extend`,
        style: 'small',
        returnTo: layout.urls.server(userName, name),
      })
    }</div>${may.extend && keepForm(layout, server, view.maxKeptSeconds)}`;
  }
  const sentence = limitSentence(server);
  return sentence !== '' && html`<p class="soft">${sentence}</p>`;
}

/** Whether it counts as used though its user does nothing, and why. */
function workSentence({ load, idleCores, busyKernels = [] }: ServerPageView): Text {
  if (busyKernels.length > 0) {
    const names = busyKernels.filter((name) => name !== '').join(', ');
    return names === ''
      ? text`A kernel is calculating, which counts as use: before that ends, the server is not stopped for being idle.`
      : text`A kernel is calculating (${names}), which counts as use: before that ends, the server is not stopped for being idle.`;
  }
  const cores = load.series?.figures.cpuCores.at(-1);
  if (idleCores === 0 || typeof cores !== 'number') {
    return text`How much it works is not known: what it sends counts as use.`;
  }
  return cores < idleCores
    ? text`Its processes are idle: they take ${formatCpu(cores)} CPU, less than ${formatCpu(idleCores)}.`
    : text`It works, which counts as use: its processes take ${formatCpu(cores)} CPU.`;
}

function ownerOf({ layout, server: { userName } }: ServerPageView): HtmlValue {
  return text`of ${adminLink(layout, 'user', userName)}`;
}

function since({ layout: { now }, server }: ServerPageView): HtmlValue {
  const { state, startedAt, stoppedAt, unreachableSince, lastActivityAt } = server;
  const lastUsed = lastActivityAt && text`Last used ${timeElement(lastActivityAt, now)}.`;
  if (state === 'unreachable')
    return (
      unreachableSince && html` <span class="soft">${timeElement(unreachableSince, now)}</span>`
    );
  if (state === 'running') {
    return html` <span class="soft">${startedAt && text`Started ${timeElement(startedAt, now)}.`}${lastUsed && html` ${lastUsed}`}</span>`;
  }
  const ended = stoppedAt && text`Ended ${timeElement(stoppedAt, now)}.`;
  return (
    state !== 'starting' &&
    (ended || lastUsed) &&
    html` <span class="soft">${ended}${lastUsed && html` ${lastUsed}`}</span>`
  );
}

function failureSection({ layout, server }: ServerPageView, failure: ServerFailure): Html {
  const isOver = server.state === 'failed';
  return html`<section class="block failure" aria-labelledby="failure-title"><h2 id="failure-title">${isOver ? text`Why it failed` : text`The failure before`}</h2>
<p class="problem">${failure.message} <span class="soft">${timeElement(failure.at, layout.now)}</span></p>
${
  failure.output.length > 0 &&
  html`<details class="more"${isOver && html` open`}><summary>${text`The last lines it wrote`}</summary>${outputBlock(failure.output)}</details>`
}</section>`;
}

const fact = (label: Phrase, value: HtmlValue): Html =>
  html`<div><dt>${label}</dt><dd>${value}</dd></div>`;

function facts({ server, setup, place, layout, homeSpace }: ServerPageView): Html {
  const { profile, options, limits } = setup;
  return html`${fact(text`Address`, html`<code>${server.url}</code>`)}
${server.displayName !== undefined && fact(text`Name`, server.name)}
${profile !== undefined && fact(text`Profile`, profile)}
${options.map(({ label, value }) => fact(label, value))}
${limits.cpuCores !== undefined && fact(text`CPU limit`, formatCpu(limits.cpuCores))}
${limits.memoryBytes !== undefined && fact(text`Memory limit`, formatBytes(limits.memoryBytes))}
${limits.gpus !== undefined && fact(text`GPUs`, formatNumber(limits.gpus))}
${limits.processes !== undefined && fact(text`Process limit`, formatNumber(limits.processes))}
${homeSpace !== undefined && fact(text`Home folder`, text`${formatBytes(homeSpace.totalBytes - homeSpace.freeBytes)} of ${formatBytes(homeSpace.totalBytes)} used`)}
${server.state !== 'running' && server.startedAt !== undefined && fact(text`Started`, timeElement(server.startedAt, layout.now))}
${place.map(({ label, value }) => fact(label, value))}`;
}

function actions(view: ServerPageView): Html {
  const { layout, server, may } = view;
  const { urls } = layout;
  const { userName, name, state, url } = server;
  const form = (action: string, label: Phrase, style?: string) =>
    actionForm(layout, {
      action,
      label,
      ...(style !== undefined && { style }),
      fields: { return_to: urls.server(userName, name) },
    });
  const stopLabel = state === 'unreachable' ? text`Discard server` : text`Stop`;
  const isUp = state === 'running' || state === 'starting' || state === 'unreachable';
  const isDown = state === 'stopped' || state === 'failed';
  return html`<div class="actions">
${may.share && html`<a class="button" href="${urls.share(userName, name)}">${text`Share…`}</a>`}
${may.stop && name !== '' && html`<a class="button danger" href="${urls.deleteServer(userName, name)}">${text`Delete…`}</a>`}
${may.stop && may.start && state === 'running' && form(urls.restartServer(userName, name), text`Restart`)}
${may.stop && isUp && form(urls.stop(userName, name), stopLabel)}
${may.start && isDown && startButton(view, form)}
${state === 'starting' && html`<a class="button primary" href="${urls.spawnPending(userName, name)}">${text`View progress`}</a>`}
${may.open && state === 'running' && html`<a class="button primary" href="${url}">${text`Open`}</a>`}
</div>`;
}

function startButton(
  { layout, server, hasSpawnOptions, hasLastOptions }: ServerPageView,
  form: (action: string, label: Phrase, style?: string) => Html,
): Html {
  const { urls } = layout;
  const action = urls.spawn(server.userName, server.name);
  const hasFailed = server.state === 'failed';
  if (!hasSpawnOptions) {
    return form(action, hasFailed ? text`Start again` : text`Start`, 'primary');
  }
  const asBefore = hasFailed ? text`Restart with same options` : text`Start with same options`;
  // Without options a start takes those of the last time.
  return html`${hasLastOptions && form(urls.restartServer(server.userName, server.name), asBefore)}<a class="button primary" href="${action}">${text`Start…`}</a>`;
}
