import type { IncomingHttpHeaders } from 'node:http';

/** Whether the request is a browser going to a page, rather than a script or a program. */
export function isNavigation(method: string | undefined, headers: IncomingHttpHeaders): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false;
  const mode = headers['sec-fetch-mode'];
  if (mode !== undefined) return mode === 'navigate' || mode === 'nested-navigate';
  return prefersHtml(headers) && headers['x-requested-with'] === undefined;
}

/**
 * Whether a browser wants a page to show, one that applies Content-Security-Policy: programs say none of this, whatever
 * they accept. The destination is told over TLS and at localhost (Fetch Metadata §2.1), the other everywhere else
 * (Upgrade Insecure Requests §3.2.1).
 */
export function isForWindow(headers: IncomingHttpHeaders): boolean {
  return headers['sec-fetch-dest'] === 'document' || headers['upgrade-insecure-requests'] === '1';
}

/** Whether an HTML answer suits the Accept header better than JSON. */
export function prefersHtml(headers: IncomingHttpHeaders): boolean {
  const accept = headers.accept;
  if (accept === undefined) return false;
  const html = quality(accept, 'text/html');
  return html > 0 && html >= quality(accept, 'application/json');
}

/** Whether OpenMetrics suits the Accept header better than the text format of Prometheus. */
export function prefersOpenMetrics({ accept = '' }: IncomingHttpHeaders): boolean {
  return quality(accept, 'application/openmetrics-text') > quality(accept, 'text/plain');
}

function quality(accept: string, type: string): number {
  let best = 0;
  for (const range of accept.toLowerCase().split(',')) {
    const [name = '', ...parameters] = range.split(';').map((part) => part.trim());
    if (name !== type) continue;
    const weight = parameters.find((parameter) => parameter.startsWith('q='));
    best = Math.max(best, weight === undefined ? 1 : Number(weight.slice(2)) || 0);
  }
  return best;
}
