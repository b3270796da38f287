import { message, type Phrase, text } from '../../../platform/texts/text.ts';
import { actionForm, csrfField, hiddenFields, textField } from '../elements/form.ts';
import type { FormLayoutProps } from '../elements/layout-props.ts';
import { loadSparks } from '../elements/load-plots.ts';
import { table } from '../elements/table.ts';
import { timeElement } from '../elements/time.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import {
  comingStopSentence,
  extendForm,
  isAboutToStop,
  limitSentence,
  type ServerSummary,
  serverStatus,
} from './server-summary.ts';

/** The servers of a user beside the default one. */
export interface NamedServers {
  readonly servers: readonly ServerSummary[];
  /** Most that a user may have; 0 for no limit. */
  readonly limit: number;
  /** What was wrong with the name that was sent. */
  readonly problem?: Phrase | undefined;
  readonly typedName?: string | undefined;
}

interface NamedServersContext {
  readonly layout: FormLayoutProps;
  readonly userName: string;
  readonly hasSpawnOptions: boolean;
  readonly mayShare?: boolean;
  readonly limitWarningSeconds?: number;
}

/** The table of named servers with the form that makes another. */
export function namedServersSection(context: NamedServersContext, named: NamedServers): Html {
  const { servers, limit } = named;
  const { now } = context.layout;
  return html`<section class="block"><h2>${text`More servers`}</h2>
<p class="soft">${text`Separate servers for separate work, each with its own name and address.`}</p>
${
  servers.length > 0 &&
  table(
    text`Your named servers`,
    [
      {
        label: text`Name`,
        style: 'name',
        cell: (server) =>
          html`<a href="${context.layout.urls.server(server.userName, server.name)}">${server.displayName ?? server.name}</a>${underName(server)}${loadSparks(server.load)}`,
      },
      {
        label: text`State`,
        cell: (server) =>
          html`${serverStatus(server.state)}${isAboutToStop(context, server) && html`<span class="under">${comingStopSentence(server, now)}</span>`}`,
      },
      {
        label: text`Last used`,
        cell: ({ lastActivityAt }) => timeElement(lastActivityAt, now),
      },
      {
        label: text`Actions`,
        style: 'end',
        cell: (server) =>
          html`<div class="actions">${context.mayShare && shareLink(context, server)}${rowActions(context, server)}</div>`,
      },
    ],
    servers,
  )
}
${
  limit > 0 && servers.length >= limit
    ? html`<p class="small soft">${message('You have {count, plural, one {# named server} other {# named servers}}, the most you may have. Delete one to make another.', { count: servers.length })}</p>`
    : createForm(context, named)
}
</section>`;
}

function underName(server: ServerSummary): HtmlValue {
  const why = server.failure ?? limitSentence(server);
  return why !== '' && html`<span class="under">${why}</span>`;
}

function createForm({ layout, userName }: NamedServersContext, named: NamedServers): Html {
  return html`<form class="inline-form" method="post" action="${layout.urls.createServer}">
${csrfField(layout)}${hiddenFields({ user: userName })}
${textField({
  name: 'name',
  label: text`Name of a new server`,
  value: named.typedName,
  problem: named.problem,
  autocomplete: 'off',
  isLiteral: true,
  maxLength: 255,
  placeholder: text`thesis`,
})}
<button class="button">${text`Create server`}</button>
</form>`;
}

function shareLink({ layout }: NamedServersContext, { userName, name }: ServerSummary): Html {
  return html`<a class="button small" href="${layout.urls.share(userName, name)}" aria-label="${text`Share ${name}`}">${text`Share…`}</a>`;
}

function rowActions(context: NamedServersContext, server: ServerSummary): HtmlValue {
  const { urls } = context.layout;
  const title = server.displayName ?? server.name;
  const { userName, name, state, url } = server;
  const stop = actionForm(context.layout, {
    action: urls.stop(userName, name),
    label: text`Stop`,
    accessibleLabel: text`Stop ${title}`,
    style: 'small',
  });
  switch (state) {
    case 'running':
      return html`${stop}${isAboutToStop(context, server) && extendForm(context.layout, server, { label: text`Keep`, accessibleLabel: text`Keep ${title} running`, style: 'small' })}<a class="button small" href="${url}" aria-label="${text`Open ${title}`}">${text`Open`}</a>`;
    case 'starting':
      return html`${stop}<a class="button small" href="${urls.spawnPending(userName, name)}" aria-label="${text`Watch ${title} start`}">${text`Watch`}</a>`;
    case 'unreachable':
      return actionForm(context.layout, {
        action: urls.stop(userName, name),
        label: text`Forget`,
        accessibleLabel: text`Forget ${title}`,
        style: 'small',
      });
    case 'stopping':
      return '';
    case 'failed':
    case 'stopped':
      return html`<a class="button small danger" href="${urls.deleteServer(userName, name)}" aria-label="${text`Delete ${title}`}">${text`Delete`}</a>${state === 'failed' && html`<a class="button small" href="${urls.server(userName, name)}" aria-label="${text`Why ${title} failed`}">${text`Why?`}</a>`}${startButton(context, server, title)}`;
  }
}

function startButton(
  { layout, hasSpawnOptions }: NamedServersContext,
  { userName, name }: ServerSummary,
  title: string,
): Html {
  const action = layout.urls.spawn(userName, name);
  if (hasSpawnOptions) {
    return html`<a class="button small" href="${action}" aria-label="${text`Start ${title}`}">${text`Start…`}</a>`;
  }
  return actionForm(layout, {
    action,
    label: text`Start`,
    accessibleLabel: text`Start ${title}`,
    style: 'small',
  });
}
