import type { AuditEntry } from '../../audit/deed.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import type { PageUrls } from '../page-urls.ts';
import type { LayoutProps } from './layout-props.ts';
import { table } from './table.ts';
import { timeElement } from './time.ts';

/** Rows of the audit log. */
export function auditTable(
  { now, urls }: LayoutProps,
  entries: readonly AuditEntry[],
  {
    caption,
    isForAdministrators,
    ownName,
  }: {
    readonly caption: string;
    /** Names link to users then. */
    readonly isForAdministrators: boolean;
    /** Whose page it is: addresses of others are left out of it. */
    readonly ownName?: string;
  },
): Html {
  const nameUrls = isForAdministrators ? urls : undefined;
  return table(
    caption,
    [
      {
        label: 'Action',
        style: 'name',
        cell: ({ action, result }) =>
          html`${action}${result !== 'done' && html` <span class="tag">${result === 'refused' ? 'Refused' : 'Failed'}</span>`}`,
      },
      { label: 'When', cell: ({ at }) => timeElement(at, now) },
      {
        label: 'By',
        cell: (entry) => {
          const { address, name } = entry.actor;
          const isShown = isForAdministrators || name === ownName || name === undefined;
          return html`${actor(entry, nameUrls)}${address !== undefined && isShown && html` <span class="soft">from ${address}</span>`}`;
        },
      },
      { label: 'What', cell: (entry) => target(entry, nameUrls) },
      { label: 'Detail', cell: ({ detail }) => details(detail) },
    ],
    entries,
  );
}

const kindsOfActors = {
  user: 'User',
  service: 'Service',
  anonymous: 'Someone not logged in',
  hub: 'The hub',
  command_line: 'Command line',
  proxy_api: 'A JupyterHub',
} as const;

function actor({ actor: { kind, name } }: AuditEntry, urls: PageUrls | undefined): HtmlValue {
  if (kind === 'user' && name !== undefined) return userName(name, urls);
  return name === undefined ? kindsOfActors[kind] : `${kindsOfActors[kind]} ${name}`;
}

function target({ target: to }: AuditEntry, urls: PageUrls | undefined): HtmlValue {
  if (to === undefined) return html`<span class="soft">–</span>`;
  const { kind, name, part } = to;
  if (kind === 'user') return userName(name, urls);
  if (kind === 'server') {
    return html`${part === undefined || part === '' ? 'Server' : html`Server ${part}`} of ${userName(name, urls)}`;
  }
  if (kind === 'session') return html`Login of ${userName(name, urls)}`;
  if (kind === 'token') return `Token of ${name}`;
  return `${kind.slice(0, 1).toUpperCase()}${kind.slice(1)} ${name}`;
}

function userName(name: string, urls: PageUrls | undefined): Html {
  return urls === undefined ? html`${name}` : html`<a href="${urls.adminUser(name)}">${name}</a>`;
}

const longestDetail = 120;

function details(detail: AuditEntry['detail']): HtmlValue {
  const parts = Object.entries(detail)
    .filter(([key]) => key !== 'session')
    .map(([key, value]) => `${key.replaceAll('_', ' ')}: ${textOf(value)}`);
  return parts.length === 0 ? html`<span class="soft">–</span>` : parts.join('; ');
}

function textOf(value: unknown): string {
  const text = Array.isArray(value)
    ? value.map(String).join(', ')
    : typeof value === 'string'
      ? value
      : JSON.stringify(value);
  return text.length > longestDetail ? `${text.slice(0, longestDetail)}…` : text;
}
