import { actionLabels, refusedLabels } from '../../../platform/audit/action-labels.ts';
import type { AuditAction } from '../../../platform/audit/actions.ts';
import type { AuditEntry } from '../../../platform/audit/audit-event.ts';
import { type AuditDetail, detailLabels } from '../../../platform/audit/detail-labels.ts';
import { readServerClientId } from '../../../platform/protocol/client-id.ts';
import {
  exactTime,
  joined,
  message,
  type Phrase,
  type Text,
  text,
} from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { adminLink } from './admin-link.ts';
import { codeWord } from './code-labels.ts';
import { deviceName } from './device.ts';
import type { LayoutProps } from './layout-props.ts';
import { timeElement } from './quantity.ts';
import { table } from './table.ts';

/** The name of a user, as a link where it is one. */
type NameLink = (name: string) => Html;

/** Rows of the audit log. */
export function auditTable(
  layout: LayoutProps,
  entries: readonly AuditEntry[],
  {
    caption,
    isForAdministrators,
    ownName,
    sessions = [],
  }: {
    readonly caption: Phrase;
    /** Names link to users then. */
    readonly isForAdministrators: boolean;
    /** Whose page it is: addresses of others, and other users of a action, are left out of it. */
    readonly ownName?: string;
    /** Logins that go on, whose browser is told. */
    readonly sessions?:
      | readonly { readonly sessionId: string; readonly userAgent: string }[]
      | undefined;
  },
): Html {
  const { now } = layout;
  const link: NameLink = (name) =>
    isForAdministrators ? adminLink(layout, 'user', name) : html`${name}`;
  const isVisibleName = (name: string) => isForAdministrators || name === ownName;
  // All that came from it.
  const addressOf = (address: string) =>
    isForAdministrators
      ? html`<a href="${layout.urls.adminActivity}?${new URLSearchParams({ address }).toString()}">${address}</a>`
      : address;
  return table(
    caption,
    [
      {
        label: text`Action`,
        style: 'name',
        cell: ({ action, result, count }) => {
          const refused = result === 'refused' ? refusedLabels[action] : undefined;
          return html`<span title="${action}">${refused ?? wordsFor(action)}</span>${count > 1 && html` <span class="tag">${message('{count, plural, one {once} other {# times}}', { count })}</span>`}${result !== 'done' && refused === undefined && html` <span class="tag">${result === 'refused' ? text`Refused` : text`Failed`}</span>`}`;
        },
      },
      { label: text`When`, cell: ({ at }) => timeElement(at, now) },
      {
        label: text`Actor`,
        cell: (entry) => {
          const { address, name, sessionId } = entry.actor;
          const login = sessions.find((each) => each.sessionId === sessionId);
          const isShown = isForAdministrators || name === ownName || name === undefined;
          return html`${actorOf(entry, link)}${address !== undefined && isShown && html` <span class="soft">${text`from ${addressOf(address)}`}${login && html`, ${deviceName(login.userAgent)}`}</span>`}`;
        },
      },
      { label: text`Target`, cell: (entry) => target(entry, link) },
      {
        label: text`Detail`,
        cell: ({ detail, users }) => details(detail, users.filter(isVisibleName)),
      },
    ],
    entries,
  );
}

/** Rows of a later version of the hub have its code. */
function wordsFor(action: string): Phrase {
  return Object.hasOwn(actionLabels, action) ? actionLabels[action as AuditAction] : action;
}

const kindsOfActors = {
  user: text`User`,
  service: text`Service`,
  anonymous: text`Anonymous`,
  hub: text`The hub`,
  command_line: text`Command line`,
  proxy_api: text`A JupyterHub`,
} as const;

/** Who did it. */
export function actorOf({ actor: { kind, name } }: AuditEntry, link: NameLink): HtmlValue {
  if (kind === 'user' && name !== undefined) return link(name);
  return name === undefined ? kindsOfActors[kind] : html`${kindsOfActors[kind]} ${name}`;
}

function target({ target: to }: AuditEntry, link: NameLink): HtmlValue {
  if (to === undefined) return html`<span class="soft">–</span>`;
  const { kind, name, part } = to;
  if (kind === 'user') return link(name);
  if (kind === 'server') return serverOf(name, part, link);
  if (kind === 'client') {
    // Some names of users and servers make the same id: that is shown then.
    const [server, ...others] = readServerClientId(name);
    if (server !== undefined && others.length === 0)
      return serverOf(server.userName, server.serverName, link);
  }
  if (kind === 'session') return text`Login of ${link(name)}`;
  if (kind === 'token') return text`Token of ${name}`;
  return html`${kindsOfTargets[kind]} ${name}`;
}

function serverOf(ownerName: string, serverName: string | undefined, link: NameLink): Text {
  const owner = link(ownerName);
  return serverName === undefined || serverName === ''
    ? text`Server of ${owner}`
    : text`Server ${serverName} of ${owner}`;
}

/** Others are written with what they belong to. */
const kindsOfTargets = {
  group: text`Group`,
  role: text`Role`,
  service: text`Service`,
  client: text`Application`,
  route: text`Route`,
  lockout: text`Lockout`,
  budget: text`Budget`,
  hub: text`Hub`,
} as const;

const maxDetailLength = 120;

function details(detail: AuditEntry['detail'], users: readonly string[]): HtmlValue {
  const parts = Object.entries({ ...(users.length > 0 && { users }), ...detail })
    .filter(([key]) => key !== 'session')
    .map(([key, value]) => text`${factName(key)}: ${timeOf(key, value) ?? factOf(key, value)}`);
  return parts.length === 0 ? html`<span class="soft">–</span>` : joined(parts, '; ');
}

/** Rows of a later version of the hub, and facts that a row says were left out, have their key. */
function factName(key: string): Phrase {
  if (Object.hasOwn(detailLabels, key)) return detailLabels[key as keyof AuditDetail];
  return key.replaceAll('_', ' ');
}

const times: ReadonlySet<string> = new Set(['expires_at', 'until'] satisfies (keyof AuditDetail)[]);

function timeOf(key: string, value: unknown): Phrase | undefined {
  if (!times.has(key) || typeof value !== 'string') return undefined;
  const time = new Date(value);
  return Number.isNaN(time.getTime()) ? undefined : exactTime(time);
}

function factOf(key: string, value: unknown): Phrase {
  if (typeof value === 'boolean') return value ? text`Yes` : text`No`;
  if (value === null) return '–';
  if (key === 'action') return wordsFor(String(value));
  if (key === 'changed' && Array.isArray(value)) {
    return joined(
      value.map((each) => codeWord(key, String(each))),
      ', ',
    );
  }
  const written = Array.isArray(value)
    ? value.map(String).join(', ')
    : typeof value === 'string'
      ? value
      : JSON.stringify(value);
  return codeWord(
    key,
    written.length > maxDetailLength ? `${written.slice(0, maxDetailLength)}…` : written,
  );
}
