import { once } from 'node:events';
import type { Server } from 'node:http';
import { StartupError } from '../../errors.ts';

/** Listens at a URL such as `http://127.0.0.1:8000/`. Throws StartupError when it cannot. */
export async function listen(server: Server, url: string, key: string): Promise<void> {
  const { hostname, port } = new URL(url);
  server.listen({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 80 : Number(port),
  });
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason =
      {
        EADDRINUSE: 'something else listens there already; stop it or choose another port',
        EACCES: 'the hub may not use this port; choose one above 1023 or start it with more rights',
        EADDRNOTAVAIL: 'this machine has no such address',
      }[code ?? ''] ?? String(error);
    throw new StartupError(`cannot listen at ${url} (${key}): ${reason}`, { cause: error });
  }
}
