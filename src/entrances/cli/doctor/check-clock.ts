import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { isLoopback } from '../../../platform/addresses/host-address.ts';
import { type Finding, ok, skipped, warning } from '../../../plugin/host/finding.ts';

const check = 'clock';
/** By how much two clocks may differ before logins and tokens suffer from it. */
const toleranceMs = 5_000;

/** Whether this machine's clock agrees with another; `aheadMs` is how much later the other one is. */
export function clockFinding(aheadMs: number, other: string): Finding {
  const seconds = (Math.abs(aheadMs) / 1000).toFixed(1);
  if (Math.abs(aheadMs) <= toleranceMs) return ok(check, `within ${seconds} s of ${other}`);
  const direction = aheadMs > 0 ? 'behind' : 'ahead of';
  return warning(
    check,
    `this machine is ${seconds} s ${direction} ${other}`,
    'let both take the time from the network (chrony, systemd-timesyncd)',
  );
}

export interface ClockReadings extends Disposable {
  /** One of those who agree with this machine's clock, and each who does not; by the origins of their addresses. */
  findings(): readonly Finding[];
}

/** Takes the time from every answer to a request of this process, until it is disposed of (RFC 9110, section 6.6.1). */
export function readClocks(): ClockReadings {
  const aheadMs = new Map<string, number>();
  const read = (message: unknown) => {
    const { request, response } = message as {
      request: { origin: string | URL };
      response: { headers: readonly Buffer[] };
    };
    const named = (name: string) => {
      const at = response.headers.findIndex(
        (each, index) => index % 2 === 0 && each.toString().toLowerCase() === name,
      );
      return at === -1 ? undefined : response.headers[at + 1]?.toString();
    };
    const sentMs = Date.parse(named('date') ?? '');
    // Since a cache has it (RFC 9111, section 5.1).
    const ageSeconds = Number(named('age') ?? 0);
    if (Number.isNaN(sentMs) || Number.isNaN(ageSeconds)) return;
    // The header has no fractions of a second: it means half a second more in the mean.
    aheadMs.set(String(request.origin), sentMs + 500 + ageSeconds * 1000 - Date.now());
  };
  subscribe('undici:request:headers', read);
  return {
    findings() {
      const found = [...aheadMs].map(([origin, ahead]) => ({
        ...clockFinding(ahead, origin),
        // What runs on this machine has this clock, unless it is the end of a tunnel.
        isOwn: isLoopback(new URL(origin).hostname),
      }));
      const [agreeing] = found.filter(({ state, isOwn }) => state === 'ok' && !isOwn);
      const differing = found.filter(({ state }) => state !== 'ok');
      return [...(agreeing === undefined ? [] : [agreeing]), ...differing].map(
        ({ isOwn, ...finding }) => finding,
      );
    },
    [Symbol.dispose]: () => void unsubscribe('undici:request:headers', read),
  };
}

/** Where neither the database nor anything that was asked told the time. */
export const clockUnknown = (): Finding =>
  skipped(check, 'nothing that was asked told the time, to compare it with');
