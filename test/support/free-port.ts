import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type ListenOptions } from 'node:net';

/** Below the ports that systems give to outgoing connections, of which other tests open many. */
const testPorts = { from: 12_000, to: 32_000 };

/**
 * A loopback port that nothing listens on and that no other call, in any process of the machine, is
 * given while this process lives. A test may therefore listen on it late, or close it and listen
 * again.
 */
export async function freePort(range = testPorts): Promise<number> {
  for (;;) {
    const port = randomInt(range.from, range.to);
    if (!(await reserve(port))) continue;
    const probe = await tryToListen({ port, host: '127.0.0.1' });
    if (probe === undefined) continue;
    probe.close();
    await once(probe, 'close');
    return port;
  }
}

/** The system takes a name in its abstract namespace back when the process ends, however it ends. */
async function reserve(port: number): Promise<boolean> {
  if (process.platform !== 'linux') return true;
  const mark = await tryToListen({ path: `\0hub-test-port-${port}` });
  mark?.unref();
  return mark !== undefined;
}

async function tryToListen(options: ListenOptions) {
  const server = createServer().listen(options);
  try {
    await once(server, 'listening');
    return server;
  } catch {
    return undefined;
  }
}
