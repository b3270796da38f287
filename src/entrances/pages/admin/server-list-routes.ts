import { bordersOf } from '../elements/table.ts';
import type { BoundPages } from '../forms/binding.ts';
import { summaryOf } from '../servers/server-views.ts';
import { serversPage } from './servers-page.ts';

/** `/hub/admin/servers`: the servers of all users. */
export function adminServerListRoutes({ page, pages }: BoundPages): void {
  page('/admin/servers', 'viewServers', ({ layout, model, may }) => {
    const { found, rows, counts, query } = model;
    return serversPage({
      layout,
      query,
      counts,
      total: found.total,
      borders: bordersOf(found, ({ key }) => key),
      servers: rows.map(({ server, prefix, load }) => {
        const { userName: name, name: serverName } = server;
        const of = { name, server: serverName };
        return {
          ...summaryOf(server, pages.urlOf(prefix), load),
          mayStop: may(serverName === '' ? 'stopDefaultServer' : 'stopNamedServer', of),
        };
      }),
      mayStopMany: may('stopServersOfUser', { name: '' }),
    });
  });
}
