import type { RouteLimits } from '../../platform/config/route-limits-schema.ts';
import { HubError } from '../../platform/errors.ts';
import { networkOf } from '../../platform/http/connection-limits.ts';
import { type ClientAddress, createTrustedPeer } from '../../platform/http/request-address.ts';
import { text } from '../../platform/texts/text.ts';

/** Visitors counted at once; the one that came least recently makes room. */
const maxVisitors = 10_000;

/** Who comes, as far as it is known. */
export interface LimitedVisitor {
  readonly userName?: string | undefined;
  /** Of the client. */
  readonly address: string;
}

/** The limits of a route, ready to be asked. */
export interface RouteLimiter {
  /** Why a client may not come, whoever it is; undefined where it may. */
  clientProblem(client: Pick<ClientAddress, 'address' | 'certificate'>): HubError | undefined;
  /** Counts a request that is to be forwarded; gives the refusal of one too many, which is not counted. */
  takeRequest(visitor: LimitedVisitor): HubError | undefined;
  /** Counts bytes of answers, and says for how many milliseconds nothing more should follow. */
  takeBytes(visitor: LimitedVisitor, bytes: number): number;
  /** For a whole request; Infinity for no limit. */
  readonly requestTimeoutMs: number;
  /** For a request of which nothing moves; Infinity for no limit. */
  readonly idleTimeoutMs: number;
}

/** `now` is milliseconds on a monotonic clock. */
export function createRouteLimiter(
  limits: RouteLimits,
  now = () => performance.now(),
): RouteLimiter {
  const { allow_addresses, deny_addresses, requests_per_second, bytes_per_second, per } = limits;
  const isAllowed = allow_addresses && createTrustedPeer(allow_addresses);
  const isDenied = deny_addresses && createTrustedPeer(deny_addresses);
  const requests = requests_per_second && createRate(requests_per_second, now);
  const bytesSent = bytes_per_second && createRate(bytes_per_second, now);
  const keyOf = ({ userName, address }: LimitedVisitor) =>
    per === 'user' && userName !== undefined ? `user ${userName}` : networkOf(address);
  return {
    clientProblem({ address, certificate }) {
      if (isDenied?.(address) === true || isAllowed?.(address) === false) {
        return new HubError('forbidden', text`This app cannot be opened from your address.`);
      }
      if (limits.client_certificate === undefined || certificate !== undefined) return undefined;
      return new HubError('forbidden', text`This app needs a certificate of your browser.`, {
        hint: text`Ask an administrator for one, add it to your browser, and open the browser again.`,
      });
    },
    takeRequest(visitor) {
      if (!requests) return undefined;
      const waitMs = requests(keyOf(visitor));
      if (waitMs === 0) return undefined;
      return new HubError('too_many_requests', text`You send too many requests to this app.`, {
        retryAfterSeconds: Math.ceil(waitMs / 1000),
      });
    },
    takeBytes: (visitor, bytes) => (bytesSent ? bytesSent(keyOf(visitor), bytes) : 0),
    requestTimeoutMs: (limits.request_timeout ?? Infinity) * 1000,
    idleTimeoutMs: (limits.idle_timeout ?? Infinity) * 1000,
  };
}

/**
 * Counts by the generic cell rate algorithm (ITU-T I.371), one number for each visitor: when all that was taken would
 * have come at an even pace. Returns for how many milliseconds it is too early for more. One that is too early is not
 * counted; an amount is, because it is gone already.
 */
function createRate(
  perSecond: number,
  now: () => number,
): (visitor: string, amount?: number) => number {
  const paceMs = 1000 / perSecond;
  const burstMs = Math.max(1000, paceMs);
  const evenAtMs = new Map<string, number>();
  return (visitor, amount) => {
    const nowMs = now();
    const nextMs = Math.max(evenAtMs.get(visitor) ?? 0, nowMs) + paceMs * (amount ?? 1);
    const waitMs = nextMs - nowMs - burstMs;
    // A clock of fractions adds up to a little more than the second.
    if (waitMs > 1e-6 && amount === undefined) return waitMs;
    evenAtMs.delete(visitor);
    evenAtMs.set(visitor, nextMs);
    const [oldest] = evenAtMs.keys();
    if (evenAtMs.size > maxVisitors && oldest !== undefined) evenAtMs.delete(oldest);
    return waitMs > 1e-6 ? waitMs : 0;
  };
}
