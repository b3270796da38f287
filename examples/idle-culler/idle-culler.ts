import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

// Stops servers that are not in use. It sees and does what its role lets it, and nothing else of the hub.

interface Server {
  readonly name: string;
  readonly ready: boolean;
  readonly pending: string | null;
  readonly started: string | null;
  readonly last_activity: string | null;
}

interface User {
  readonly name: string;
  readonly last_activity: string | null;
  /** Not with a role that lacks the scope read:servers. */
  readonly servers?: Readonly<Record<string, Server>>;
  /** The two below only with the scope read:users, which --cull-users needs. */
  readonly admin?: boolean;
  readonly created?: string;
}

const { values: flags } = parseArgs({
  options: {
    timeout: { type: 'string', default: '600' },
    'max-age': { type: 'string', default: '0' },
    interval: { type: 'string' },
    concurrency: { type: 'string', default: '10' },
    'page-size': { type: 'string', default: '200' },
    'remove-named-servers': { type: 'boolean', default: false },
    'cull-users': { type: 'boolean', default: false },
  },
});
const timeoutMs = seconds('timeout', flags.timeout) * 1000;
const maxAgeMs = seconds('max-age', flags['max-age']) * 1000;
const intervalMs = Math.max(
  flags.interval === undefined ? timeoutMs / 2 : seconds('interval', flags.interval) * 1000,
  100,
);
const concurrency = Math.max(1, Math.floor(seconds('concurrency', flags.concurrency)));
const pageSize = Math.max(1, Math.floor(seconds('page-size', flags['page-size'])));

const apiUrl = (process.env['HUB_API_URL'] ?? 'http://127.0.0.1:8080/hub/api').replace(/\/$/, '');
const apiToken = process.env['HUB_API_TOKEN'] ?? '';
if (apiToken === '') throw new Error('HUB_API_TOKEN is missing: run this as a service of the hub');

for (;;) {
  await cull().catch((error: unknown) =>
    console.error('this round failed, the next may not:', error),
  );
  await sleep(intervalMs);
}

/** One round: everything is listed before anything is stopped, which would move the later pages. */
async function cull(): Promise<void> {
  const users = await listUsers(flags['cull-users'] ? undefined : 'ready');
  await forEachOf(users, async ({ user, nowMs }) => {
    if (user.servers === undefined) {
      throw new Error(`the role of this service lacks read:servers for ${user.name}`);
    }
    let isInUse = false;
    for (const server of Object.values(user.servers)) {
      const stopped = reasonToStop(server, nowMs) !== undefined && (await stop(user, server));
      isInUse ||= !stopped;
    }
    if (flags['cull-users'] && !isInUse && isStale(user, nowMs)) await remove(user);
  });
}

/** Why a server is to be stopped. Times are compared with the hub's clock, which they come from. */
function reasonToStop(server: Server, nowMs: number): string | undefined {
  if (!server.ready || server.pending !== null) return undefined;
  const ageMs = nowMs - timeOf(server.started, nowMs);
  const idleMs = Math.min(ageMs, nowMs - timeOf(server.last_activity, 0));
  if (idleMs >= timeoutMs) return `idle for ${Math.round(idleMs / 1000)} s`;
  if (maxAgeMs > 0 && ageMs >= maxAgeMs) return `running for ${Math.round(ageMs / 1000)} s`;
  return undefined;
}

/** Stops a server; false when it is in use again, slow to stop or not to be stopped. */
async function stop(user: User, { name }: Server): Promise<boolean> {
  // While this waited its turn, the user may have come back.
  const fresh = await ask<User>('GET', `/users/${encodeURIComponent(user.name)}`);
  const server = fresh.body?.servers?.[name];
  if (server === undefined) return true;
  const reason = reasonToStop(server, fresh.nowMs);
  if (reason === undefined) return false;

  const isNamed = name !== '';
  const { status } = await ask(
    'DELETE',
    `/users/${encodeURIComponent(user.name)}/${isNamed ? `servers/${encodeURIComponent(name)}` : 'server'}`,
    isNamed && flags['remove-named-servers'] ? { remove: true } : undefined,
  );
  const what = isNamed ? `the server ${name} of ${user.name}` : `the server of ${user.name}`;
  console.log(`${status === 202 ? 'stopping' : 'stopped'} ${what}: ${reason}`);
  return status !== 202;
}

/** Whether an account is old or unused enough to go. Administrators stay, and so do the unknown. */
function isStale(user: User, nowMs: number): boolean {
  if (user.admin !== false || user.created === undefined) return false;
  const ageMs = nowMs - timeOf(user.created, nowMs);
  const idleMs = Math.min(ageMs, nowMs - timeOf(user.last_activity, 0));
  return idleMs >= timeoutMs || (maxAgeMs > 0 && ageMs >= maxAgeMs);
}

async function remove(user: User): Promise<void> {
  await ask('DELETE', `/users/${encodeURIComponent(user.name)}`);
  console.log(`deleted the user ${user.name}`);
}

async function listUsers(state: string | undefined) {
  const users: { readonly user: User; readonly nowMs: number }[] = [];
  for (let offset = 0; ; ) {
    const query = new URLSearchParams({ offset: String(offset), limit: String(pageSize) });
    if (state !== undefined) query.set('state', state);
    const { body, nowMs } = await ask<Page>('GET', `/users?${query}`);
    for (const user of body?.items ?? []) users.push({ user, nowMs });
    const next = body?._pagination.next?.offset;
    if (next === undefined || next <= offset) return users;
    offset = next;
  }
}

interface Page {
  readonly items: readonly User[];
  readonly _pagination: { readonly next: { readonly offset: number } | null };
}

/** Asks the hub. What is gone already is no failure: someone else was faster. */
async function ask<Body>(method: string, path: string, body?: unknown) {
  const response = await fetch(apiUrl + path, {
    method,
    headers: {
      authorization: `token ${apiToken}`,
      // With it, a list says how it goes on.
      accept: 'application/jupyterhub-pagination+json, application/json',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    signal: AbortSignal.timeout(60_000),
  });
  const text = await response.text();
  if (!response.ok && response.status !== 404) {
    throw new Error(`${method} ${path} was answered with ${response.status}: ${text}`);
  }
  return {
    status: response.status,
    nowMs: timeOf(response.headers.get('date'), Date.now()),
    body: response.ok && text !== '' ? (JSON.parse(text) as Body) : undefined,
  };
}

/** Does something with every item, with no more than `concurrency` under way at once. */
async function forEachOf<Item>(items: readonly Item[], work: (item: Item) => Promise<void>) {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) {
      await work(item).catch((error: unknown) => console.error(error));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

function timeOf(text: string | null | undefined, otherwiseMs: number): number {
  const timeMs = Date.parse(text ?? '');
  return Number.isNaN(timeMs) ? otherwiseMs : timeMs;
}

function seconds(flag: string, text: string): number {
  const number = Number(text);
  if (text.trim() !== '' && number >= 0) return number;
  throw new TypeError(`--${flag} must be a number, zero or more`);
}
