import { geteuid } from 'node:process';
import { findListeners } from '../processes/port-listener.ts';
import type { probeReadiness } from '../processes/readiness-probe.ts';

/**
 * A probe that takes no answer from a program of another account: while a managed service is
 * down, any account of the machine could listen on its port and get its visitors.
 */
export function createTrustedListenerProbe(
  probe: typeof probeReadiness,
  serviceUserId: () => number | undefined,
): typeof probeReadiness {
  return async (options) => {
    const result = await probe(options);
    const port = localPort(options.url);
    if (!result.ready || port === undefined) return result;
    const trusted = [0, geteuid?.(), serviceUserId()];
    const listeners = (await findListeners(port)) ?? [];
    const stranger = listeners.find(({ userId }) => !trusted.includes(userId));
    if (stranger === undefined) return result;
    const reason = `a program of user id ${stranger.userId} listens on ${options.url} in its place`;
    return { ready: false, problem: 'failed', reason };
  };
}

function localPort(text: string): number | undefined {
  const { protocol, hostname, port } = new URL(text);
  if (!/^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)) return undefined;
  if (port !== '') return Number(port);
  return protocol === 'https:' ? 443 : 80;
}
