import type { IncomingMessage } from 'node:http';
import {
  type Denied,
  deny,
  type Redirected,
  type RequestLike,
  single,
} from '../../client/decision.ts';
import type { Secret } from '../../platform/config/secret.ts';
import { randomSecret } from '../../platform/crypto/random.ts';
import { createSealer } from '../../platform/crypto/sealer.ts';
import { HubError } from '../../platform/errors.ts';
import { openCookies, serializeCookie } from '../../platform/http/cookies.ts';
import type { Origins } from '../../platform/http/origins.ts';
import type { CanonicalPath, ClientAddressReader } from '../../platform/http/request-address.ts';
import { createStateCookies, type PendingState } from '../../platform/http/state-cookies.ts';
import {
  handedOffCookie,
  handOffCookie,
  hostPrefix,
  sessionIdCookie,
} from '../../platform/protocol/cookie-names.ts';
import { text } from '../../platform/texts/text.ts';
import type { Route } from '../proxy/route.ts';
import type { ConsentCookies } from './consent-cookies.ts';

/**
 * How the session id of a browser reaches the host of a user's server, where the hub's cookies do not: the server guard
 * there sends the browser to the hub, which sends it back with a ticket that only this browser can use, once.
 */
export interface CrossOriginLogin {
  /** The session ids that a browser was given on this host; a server cannot make one up. */
  sessionIdsIn(cookieHeader: string | undefined): readonly string[];
  /** Sends a browser to the hub, to come back to a path of this host. */
  begin(url: string, request: RequestLike): Redirected;
  /** Where the hub sends a browser back to. `isOpened`: its user wants to open this server of another user. */
  ticketUrl(
    route: Pick<Route, 'prefix' | 'owner'> & { readonly serverId: string },
    arriving: { readonly sessionId: string; readonly state: string; readonly isOpened: boolean },
  ): string;
  /** Answers a browser that comes back; undefined for any other request. */
  finish(req: IncomingMessage, path: CanonicalPath): Redirected | Denied | undefined;
}

interface Ticket {
  readonly sessionId: string;
  readonly state: string;
  /** Where alone it counts. */
  readonly origin: string;
  readonly prefix: string;
  readonly serverId: string;
  readonly isOpened: boolean;
  readonly expiresAtMs: number;
}

const ticketMs = 60_000;
const maxStateLength = 64;
const sealingContext = 'hub-hand-off-ticket';

/** Undefined where all have one origin: then the hub's own cookie is there. */
export function createCrossOriginLogin(deps: {
  readonly secrets: readonly Secret[];
  readonly origins: Origins;
  readonly clientAddress: ClientAddressReader;
  /** Milliseconds since 1970, by a clock that all processes share. */
  readonly now: () => number;
  readonly isSecure: boolean;
  /** Path of `finish`, on hosts of servers. */
  readonly path: string;
  /** Where the hub takes up what was begun. */
  readonly questionUrl: (next: string) => string;
  /** Further names under which servers read the session id. */
  readonly sessionIdAliases: readonly string[];
  readonly answers: Pick<ConsentCookies, 'yes'>;
}): CrossOriginLogin | undefined {
  const { origins } = deps;
  if (!origins.areSeparate) return undefined;
  const sealer = createSealer(deps.secrets, 'arrival');
  const prefixOfNames = origins.hasHostCookies ? hostPrefix : '';
  const arrived = prefixOfNames + handedOffCookie;
  const states = createStateCookies<PendingState>(sealer, prefixOfNames + handOffCookie, deps.now);
  const attributes = { path: '/', secure: deps.isSecure };
  // Servers read it under these, as a key of what they remember; the server guard does not believe them.
  const plainNames = [sessionIdCookie, ...deps.sessionIdAliases];

  function openTicket(text: string | null): Ticket | undefined {
    const sealed = text === null ? undefined : sealer.open(text, sealingContext);
    return sealed === undefined ? undefined : (JSON.parse(sealed) as Ticket);
  }

  return {
    sessionIdsIn: (cookieHeader) => openCookies(sealer, cookieHeader, arrived),

    begin(url, request) {
      const state = randomSecret(24);
      const location = `${origins.hub}${deps.questionUrl(url)}&state=${state}`;
      const cookies = single(request.headers['cookie']);
      const setCookies = states.begin(cookies, state, { next: url }, attributes);
      return { kind: 'redirect', location, setCookies };
    },

    ticketUrl({ prefix, owner, serverId }, { sessionId, state, isOpened }) {
      const origin = origins.of(owner);
      const expiresAtMs = deps.now() + ticketMs;
      const ticket: Ticket = {
        sessionId,
        state: state.slice(0, maxStateLength),
        origin,
        prefix,
        serverId,
        isOpened,
        expiresAtMs,
      };
      return `${origin}${deps.path}?ticket=${sealer.seal(JSON.stringify(ticket), sealingContext)}`;
    },

    finish(req, { pathname, target }) {
      if (pathname !== deps.path || req.method !== 'GET') return undefined;
      const origin = origins.ofHost(deps.clientAddress(req).host);
      if (origin === undefined || origin === origins.hub) return undefined;
      const query = new URLSearchParams(target.slice(pathname.length));
      const ticket = openTicket(query.get('ticket'));
      const pending = ticket && states.find(req.headers.cookie, ticket.state);
      if (ticket?.origin !== origin || ticket.expiresAtMs < deps.now() || pending === undefined) {
        return deny(handOffRefused());
      }
      const { sessionId, prefix, serverId: id, isOpened } = ticket;
      return {
        kind: 'redirect',
        location: pending.next ?? prefix,
        setCookies: [
          ...states.end(ticket.state, attributes),
          serializeCookie(arrived, sealer.seal(sessionId, arrived), attributes),
          ...plainNames.map((name) => serializeCookie(name, sessionId, attributes)),
          ...(isOpened ? [deps.answers.yes(sessionId, { id, prefix })] : []),
        ],
      };
    },
  };
}

function handOffRefused(): HubError {
  return new HubError(
    'forbidden',
    text`This login was not started in this browser, or too long ago.`,
    {
      hint: text`Open the page again to start a new login. It needs cookies.`,
    },
  );
}
