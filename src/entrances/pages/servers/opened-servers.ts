import type { Context } from 'koa';
import type { Server } from '../../../workloads/servers/server.ts';

/** More servers than this are asked for again, the oldest first. */
const maxOpened = 100;

interface StoredAnswers {
  openedServers?: readonly string[];
}

/** Whether the user said in this login that a server may be opened; another one of its name is another server. */
export function hasOpenedServer(ctx: Context, { id }: Pick<Server, 'id'>): boolean {
  return storedIn(ctx)?.openedServers?.includes(id) === true;
}

/** Keeps that for the rest of the login. */
export function noteOpenedServer(ctx: Context, { id }: Pick<Server, 'id'>): void {
  const stored = storedIn(ctx);
  if (stored === undefined) return;
  const others = (stored.openedServers ?? []).filter((other) => other !== id);
  stored.openedServers = [...others, id].slice(-maxOpened);
}

function storedIn(ctx: Context): StoredAnswers | undefined {
  return (ctx['session'] as StoredAnswers | null) ?? undefined;
}
