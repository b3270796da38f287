import { isIP } from 'node:net';
import type { ConfigProblem } from '../errors.ts';
import type { Config } from './config.ts';

/** A name has 253 characters at most (RFC 1035 §2.3.4), and a label of 63 with its dot comes before it. */
const maxHostLength = 189;

/** What `Hub.subdomain_host` says: undefined for one shared origin, or for text that is not an origin. */
export function parseSubdomainHost(text: string | undefined): URL | undefined {
  return (text === undefined ? null : URL.parse(text)) ?? undefined;
}

/**
 * The label of the hub's own host where that is one below the domain of users' servers, so that no user
 * gets it. Undefined anywhere else.
 */
export function ownHostLabel({
  publicUrl,
  subdomainHost,
}: Pick<Config, 'publicUrl' | 'subdomainHost'>): string | undefined {
  const domain = `.${subdomainHost?.hostname ?? ''}`;
  if (subdomainHost === undefined || !publicUrl.hostname.endsWith(domain)) return undefined;
  const label = publicUrl.hostname.slice(0, -domain.length);
  return label.includes('.') ? undefined : label;
}

/** Finds what keeps `Hub.subdomain_host` from working. */
export function findSubdomainProblems(config: Config): ConfigProblem[] {
  const { subdomainHost: url, publicUrl } = config;
  if (url === undefined) return [];
  const message = problemOf(url, config);
  if (message !== undefined) return [{ path: 'Hub.subdomain_host', message }];
  if (ownHostLabel(config)?.includes('--') === true) {
    const host = publicUrl.hostname;
    return [
      {
        path: 'Hub.public_url',
        message: `${host} may become the host of a user's server, because of its two hyphens; use another name`,
      },
    ];
  }
  return [];
}

function problemOf(url: URL, { publicUrl }: Config): string | undefined {
  const { hostname, origin, href, protocol } = url;
  if (href !== `${origin}/`) return 'must be an origin such as https://hub.example.org';
  if (protocol !== publicUrl.protocol) {
    return `must begin with ${publicUrl.protocol}// as public_url does (${publicUrl.href})`;
  }
  if (isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0) {
    return 'must name a domain: an IP address has no subdomains';
  }
  if (hostname.endsWith('.')) return 'must not end in a dot';
  if (hostname.length > maxHostLength) return `is longer than ${maxHostLength} characters`;
  return undefined;
}

/** Points at what `Hub.subdomain_host` cannot protect the way it is set. */
export function findSubdomainWarnings(config: Config): ConfigProblem[] {
  const { subdomainHost, Proxy: proxy } = config;
  if (subdomainHost === undefined) return [];
  const warnings: ConfigProblem[] = [];
  if (subdomainHost.protocol === 'http:') {
    warnings.push({
      path: 'Hub.subdomain_host',
      message:
        `${subdomainHost.origin} is plain http: a page of a user's server can plant cookies for the hub, and so log ` +
        'its visitor in as another user; use https',
    });
  }
  const extra = Object.entries(proxy.extra_routes).flatMap(([spec, { access }]) =>
    spec.startsWith('/') && access === 'public' ? [spec] : [],
  );
  if (extra.length > 0) {
    warnings.push({
      path: 'Proxy.extra_routes',
      message: `${extra.join(', ')}: extra routes stay on the hub's own origin; make a service of an app to give it one of its own`,
    });
  }
  return warnings;
}
