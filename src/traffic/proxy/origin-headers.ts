/**
 * Response headers with which one upstream would speak for every page of the origin, and what each
 * would do there. Upstreams share their origin with the hub, so none of these is passed on.
 */
export const originHeaders: ReadonlyMap<string, string> = new Map([
  ['accept-ch', 'asks browsers for client hints on every request to the origin'],
  ['alt-svc', 'moves the origin to another host or port (RFC 7838)'],
  ['clear-site-data', 'deletes the cookies and storage of the hub and of every other app'],
  ['critical-ch', 'makes browsers repeat requests with the client hints it names'],
  ['expect-ct', 'reports connections to the origin (RFC 9163)'],
  ['nel', 'reports every URL of the origin elsewhere, secrets in queries included, for a year'],
  ['origin-agent-cluster', 'decides for every later page of the origin how it is isolated'],
  ['public-key-pins', 'locks browsers out of the origin (RFC 7469)'],
  ['public-key-pins-report-only', 'reports connections to the origin (RFC 7469)'],
  ['report-to', 'names where the reports of the origin go'],
  ['reporting-endpoints', 'names where reports of pages go, their URLs included'],
  ['sec-session-registration', 'binds a session of the origin to a key of the browser'],
  ['secure-session-registration', 'binds a session of the origin to a key of the browser'],
  ['set-login', 'tells browsers who is logged in at the origin (FedCM)'],
  ['strict-transport-security', 'decides on TLS for the host and all below it (RFC 6797)'],
  ['use-as-dictionary', 'takes part in the compression of other paths (RFC 9842)'],
]);

/**
 * The Cross-Origin-Opener-Policy of an upstream as browsers may have it. The hub's own pages are
 * `same-origin`: an upstream's page of the same policy would join their browsing context group, and
 * could script a page of the hub that it opens. Together with an embedder policy it is a group of its
 * own (HTML, "match cross-origin opener policy values"), which pages with shared memory need.
 */
export function openerPolicy(
  value: string,
  embedderPolicy: string | undefined,
): string | undefined {
  const policy = value.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (policy !== 'same-origin') return policy === '' ? undefined : policy;
  const embedder = embedderPolicy?.split(';', 1)[0]?.trim().toLowerCase();
  return embedder === 'require-corp' || embedder === 'credentialless' ? policy : undefined;
}
