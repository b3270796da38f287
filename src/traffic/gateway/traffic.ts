import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { upgradeStatusOf } from '../../platform/http/answer.ts';
import type { ClientAddressReader } from '../../platform/http/request-address.ts';
import { clientLeftStatus, outcomeOf, recordOf } from '../../platform/http/request-log.ts';
import { frequentInfo } from '../../platform/logging/create-log.ts';
import type { Metrics } from '../../platform/metrics/metrics.ts';
import type { Route } from '../proxy/route.ts';

/** Who came by a request, as far as the gateway knows. */
export interface Visitor {
  /** Whom the gateway admitted. */
  readonly userName?: string | undefined;
  /** The login session of a visitor whom the service or server checks itself. */
  readonly sessionId?: string | undefined;
  /** The OAuth client that comes with a token of the user, such as an agent. */
  readonly clientId?: string | undefined;
}

/** Counts and logs what goes to servers and services. */
export interface Traffic {
  /** Notes a request whose response is closed; without a route for one that was refused before. */
  requestClosed(
    req: IncomingMessage,
    res: ServerResponse,
    request: Visitor & { readonly route?: Route | undefined },
  ): void;
  /** Notes a request to upgrade now, and logs it when its connection closes. */
  followUpgrade(req: IncomingMessage, socket: Socket, route: Route | undefined): UpgradeVisit;
}

/** A WebSocket, or the refusal of one, while its connection is open. */
export interface UpgradeVisit {
  visitor: Visitor;
}

/** What an access line says. */
interface AccessLine {
  readonly requestId: string;
  readonly method: string | undefined;
  readonly path: string;
  readonly address: string;
  readonly status: number;
  readonly seconds: number;
  readonly bytes: number;
}

const maxPathLength = 2_048;
/** Sessions looked up at once for the log; with more under way a line goes without its user. */
const maxLookups = 32;

export function createTraffic(deps: {
  /** `Proxy.access_log`: whether each request gets a line, or the share of requests that do. */
  readonly accessLog: boolean | number;
  readonly clientAddress: ClientAddressReader;
  /** Who is logged in under a session id, if anybody. */
  readonly userOfSession: (sessionId: string) => Promise<string | undefined>;
  readonly count: Metrics['countForwarded'];
  readonly log: Logger;
  /** Between 0 and 1. */
  readonly random?: () => number;
}): Traffic {
  const { clientAddress, userOfSession, count, log, random = Math.random } = deps;
  const writeEvent = frequentInfo(log);
  const share = Number(deps.accessLog);
  let lookups = 0;

  const isLogged = (): boolean => share === 1 || (share > 0 && random() < share);

  function write(
    line: AccessLine,
    route: Route | undefined,
    {
      user,
      clientId,
    }: { readonly user: string | undefined; readonly clientId: string | undefined },
  ): void {
    const { requestId, method, path, address, status, seconds, bytes } = line;
    writeEvent?.({
      requestId,
      user,
      client: clientId,
      route: route?.prefix,
      method,
      path,
      status,
      bytes,
      ms: Math.round(seconds * 1000),
      address,
      msg: route === undefined ? 'request' : 'forwarded',
    });
  }

  function writeFor(
    { userName, sessionId, clientId }: Visitor,
    line: AccessLine,
    route: Route | undefined,
  ): void {
    if (userName !== undefined || sessionId === undefined || lookups >= maxLookups) {
      write(line, route, { user: userName, clientId });
      return;
    }
    lookups += 1;
    const writeWith = (user: string | undefined) => {
      lookups -= 1;
      write(line, route, { user, clientId });
    };
    userOfSession(sessionId).then(writeWith, () => writeWith(undefined));
  }

  return {
    requestClosed(req, res, request) {
      const { route } = request;
      const { status, seconds, sentBytes } = outcomeOf(req, res);
      if (route !== undefined) {
        const { owner, load } = route;
        load.requests += 1;
        const service = owner.kind === 'service' ? owner.name : '';
        count({ routeKind: owner.kind, service, status, seconds });
      }
      if (!isLogged()) return;
      const { id: requestId } = recordOf(req);
      const { address } = clientAddress(req);
      const path = loggedPath(req.url);
      const { method } = req;
      writeFor(
        request,
        { requestId, method, path, address, status, seconds, bytes: sentBytes },
        route,
      );
    },

    followUpgrade(req, socket, route) {
      const visit: UpgradeVisit = { visitor: {} };
      if (!isLogged()) return visit;
      const { id: requestId, startedAtMs, sentBytesBefore } = recordOf(req);
      const opening = { requestId, method: req.method, path: loggedPath(req.url) };
      const { address } = clientAddress(req);
      // Nothing here may keep the request itself, which would stay as long as its WebSocket.
      const closed = () => {
        const status = upgradeStatusOf(socket) ?? clientLeftStatus;
        const seconds = (performance.now() - startedAtMs) / 1000;
        const bytes = socket.bytesWritten - sentBytesBefore;
        writeFor(visit.visitor, { ...opening, address, status, seconds, bytes }, route);
      };
      if (socket.destroyed) closed();
      else socket.once('close', closed);
      return visit;
    },
  };
}

function loggedPath(url = ''): string {
  const queryAt = url.indexOf('?');
  return (queryAt === -1 ? url : url.slice(0, queryAt)).slice(0, maxPathLength);
}
