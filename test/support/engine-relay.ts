import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Stands before a container engine, and can answer in its place. */
export interface EngineRelay extends AsyncDisposable {
  /** For `DockerSpawner.host`. */
  readonly host: string;
  /** Answers such requests, as `POST /containers/…/stop`, with 204 and does not pass them on; none by default. */
  swallow(what: RegExp): void;
  /** What was swallowed. */
  readonly swallowed: readonly string[];
}

/** Starts a relay before an engine at a Unix socket, `unix:///path`. */
export async function startEngineRelay(engine: string): Promise<EngineRelay> {
  const socketPath = new URL(engine).pathname;
  const swallowed: string[] = [];
  let swallows: RegExp | undefined;

  const server = createServer((incoming, answer) => {
    const { method = '', url: path = '', headers } = incoming;
    const what = `${method} ${path}`;
    if (swallows?.test(what) === true) {
      swallowed.push(what);
      incoming.resume();
      answer.writeHead(204).end();
      return;
    }
    const outgoing = request({ socketPath, method, path, headers }, (given: IncomingMessage) => {
      answer.writeHead(given.statusCode ?? 502, given.headers);
      // Events have to be told of before the first one.
      answer.flushHeaders();
      given.pipe(answer);
    });
    outgoing.on('error', () => answer.destroy());
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    host: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    swallow(what) {
      swallows = what;
    },
    swallowed,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
