import type { Client } from '../../../identity/oauth/clients/client.ts';
import type { Phrase } from '../../../platform/texts/text.ts';
import { serverTitle } from '../servers/server-summary.ts';

/** What an OAuth client is called for its reader: by its id when it is gone. */
export function clientTitle(client: Client | undefined, clientId: string, viewer: string): Phrase {
  const server = client?.identity.server;
  if (server === undefined) return client?.name ?? clientId;
  const isOwn = server.userName === viewer;
  // Which server of someone else it is, its name alone does not say.
  if (!isOwn && server.serverName !== '') return client?.name ?? clientId;
  return serverTitle({ ...server, name: server.serverName }, viewer);
}
