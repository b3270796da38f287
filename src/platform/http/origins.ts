import type { Middleware } from 'koa';
import type { AccessTarget } from '../protocol/client-id.ts';
import { serviceHostLabel, userHostLabel } from '../protocol/host-label.ts';
import { decodePath, hostnameOf } from './request-address.ts';

/** Whose origin: that of a user's servers, of a service, or of the hub for everything else. */
export type OriginOwner = AccessTarget | { readonly kind: 'extra' };

/** Which origin serves what: the hub's own for all, or one for each user and service (`Hub.subdomain_host`). */
export interface Origins {
  /** Of the hub's pages and API. */
  readonly hub: string;
  /** Whether users' servers and services have origins of their own. */
  readonly areSeparate: boolean;
  /** Whether cookies have the prefix `__Host-`, which keeps pages of neighbours from planting them. */
  readonly hasHostCookies: boolean;
  of(owner: OriginOwner): string;
  /** A path as browsers are sent there: absolute where another origin than the hub's serves it. */
  urlOf(path: string): string;
  /** Whose origin serves a path; undefined where that is the hub's own. */
  ownerOf(pathname: string): AccessTarget | undefined;
  /** The origin that a Host header names, whatever its port; undefined where it is none of the hub's. */
  ofHost(hostHeader: string): string | undefined;
}

export function createOrigins(options: {
  readonly publicUrl: URL;
  readonly basePath: string;
  readonly subdomainHost?: URL | undefined;
  /** The label of the hub's own host, if that is below `subdomainHost`. */
  readonly ownLabel?: string | undefined;
}): Origins {
  const { publicUrl, basePath, subdomainHost, ownLabel } = options;
  const hub = publicUrl.origin;
  const usersPath = `${basePath}user/`;
  const servicesPath = `${basePath}services/`;
  const isHttps = publicUrl.protocol === 'https:';

  function ownerOf(pathname: string): AccessTarget | undefined {
    const userName = nameBelow(usersPath, pathname);
    if (userName !== undefined) return { kind: 'server', userName, serverName: '' };
    const name = nameBelow(servicesPath, pathname);
    return name === undefined ? undefined : { kind: 'service', name };
  }

  if (subdomainHost === undefined) {
    return {
      hub,
      areSeparate: false,
      hasHostCookies: false,
      of: () => hub,
      urlOf: (path) => path,
      ownerOf: () => undefined,
      ofHost: () => hub,
    };
  }

  const { protocol, host, hostname } = subdomainHost;
  const originOfLabel = (label: string) => `${protocol}//${label}.${host}`;
  const ending = `.${hostname}`;

  function of(owner: OriginOwner): string {
    switch (owner.kind) {
      case 'server':
        return originOfLabel(userHostLabel(owner.userName, ownLabel));
      case 'service':
        return originOfLabel(serviceHostLabel(owner.name));
      case 'extra':
        return hub;
    }
  }

  return {
    hub,
    areSeparate: true,
    hasHostCookies: isHttps,
    of,
    ownerOf,

    urlOf(path) {
      const owner = ownerOf(path.split(/[?#]/, 1)[0] ?? '');
      return owner === undefined ? path : of(owner) + path;
    },

    ofHost(hostHeader) {
      const name = hostnameOf(hostHeader);
      if (name === publicUrl.hostname) return hub;
      return name?.endsWith(ending) === true
        ? originOfLabel(name.slice(0, -ending.length))
        : undefined;
    },
  };
}

/** The decoded name that stands in a path right below another; undefined when there is none. */
function nameBelow(parent: string, pathname: string): string | undefined {
  if (!pathname.startsWith(parent)) return undefined;
  const [segment = ''] = pathname.slice(parent.length).split('/', 1);
  return decodePath(segment) || undefined;
}

/** Leads redirects that name a path to the origin that serves it, where there are several. */
export function hostRedirects(origins: Pick<Origins, 'hub' | 'urlOf'>): Middleware {
  return async (ctx, next) => {
    await next();
    const location = ctx.res.getHeader('location');
    if (ctx.status < 300 || ctx.status > 399) return;
    if (typeof location !== 'string' || !location.startsWith('/')) return;
    const url = origins.urlOf(location);
    ctx.set('Location', url === location ? origins.hub + location : url);
  };
}
