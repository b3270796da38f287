import type { Context } from 'koa';

/** More servers than this are asked for again, the oldest first. */
const mostOpened = 100;

interface StoredAnswers {
  openedServers?: readonly string[];
}

/** Whether the user said in this login that a server, by its id, may be opened. */
export function hasOpenedServer(ctx: Context, id: string): boolean {
  return storedIn(ctx)?.openedServers?.includes(id) === true;
}

/** Keeps that for the rest of the login. */
export function noteOpenedServer(ctx: Context, id: string): void {
  const stored = storedIn(ctx);
  if (stored === undefined) return;
  const others = (stored.openedServers ?? []).filter((other) => other !== id);
  stored.openedServers = [...others, id].slice(-mostOpened);
}

function storedIn(ctx: Context): StoredAnswers | undefined {
  return (ctx['session'] as StoredAnswers | null) ?? undefined;
}
