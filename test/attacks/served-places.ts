import { freePort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { startGuardedApp } from '../support/guarded-app.ts';
import { startAttackedHub } from './hub-harness.ts';
import { head, rawRequest } from './proxy-harness.ts';

/** A server, a path there, and what a request for it needs. */
interface Place {
  readonly port: number;
  readonly path: string;
  readonly headers: readonly string[];
}

/** Everything of the hub that speaks HTTP. */
export const placeNames = [
  'a forwarded route',
  'a page of the hub',
  'the API',
  'the internal address',
  'a gateway process',
  'hub-singleuser',
] as const;

export type PlaceName = (typeof placeNames)[number];

/** Starts all of them, two hubs in all. */
export async function startPlaces() {
  const stack = new AsyncDisposableStack();
  const { hub, port } = stack.use(await startAttackedHub());
  const app = stack.use(await startGuardedApp());
  await app.singleuser.ready;
  const public_url = `http://127.0.0.1:${await freePort()}/`;
  const behind = stack.use(await startAttackedHub({ Hub: { public_url } }));
  const gateway = stack.use(await startGateway(behind.hub));
  const headers: readonly string[] = [];
  const internalPort = Number(new URL(hub.apiUrl).port);
  const places: Readonly<Record<PlaceName, Place>> = {
    'a forwarded route': { port, path: '/open/', headers },
    'a page of the hub': { port, path: '/hub/login?', headers },
    'the API': { port, path: '/hub/api/', headers },
    'the internal address': { port: internalPort, path: '/hub/api/', headers },
    'a gateway process': { port: Number(new URL(gateway.url).port), path: '/open/', headers },
    'hub-singleuser': {
      port: app.port,
      path: '/user/alice/',
      headers: ['Authorization: token good'],
    },
  };
  /** A request for a place in bytes; `mark` ends its path. */
  function requestAt(name: PlaceName, method: string, mark: string, ...more: string[]): string {
    const place = places[name];
    return head(`${method} ${place.path}${mark}`, ...place.headers, ...more);
  }
  return {
    places,
    requestAt,
    /** The status of a request that stands alone on its connection. */
    async statusAlone(name: PlaceName, method: string, headers: string[], body: string) {
      const text = requestAt(name, method, 'alone', 'Connection: close', ...headers);
      return statuses(await rawRequest(places[name].port, text + body))[0];
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** The statuses of all answers on one connection. */
export function statuses(text: string): number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
