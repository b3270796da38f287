import type { Logger } from 'pino';
import { createAnnounced } from '../entrances/pages/announced.ts';
import { loadAssets } from '../entrances/pages/assets/assets.ts';
import { createErrorPageRenderer } from '../entrances/pages/errors/error-page-renderer.ts';
import { createPageUrls } from '../entrances/pages/page-urls.ts';
import {
  builtInBranding,
  type PublishedBranding,
  type SiteBranding,
} from '../platform/branding/branding.ts';
import type { Config } from '../platform/config/config.ts';
import { languageSettingsOf } from '../platform/config/language-settings.ts';
import { ownHostLabel } from '../platform/config/subdomain-host.ts';
import { createErrorAnswers } from '../platform/http/error-answers.ts';
import { createOrigins } from '../platform/http/origins.ts';
import { createClientAddressReader } from '../platform/http/request-address.ts';
import {
  hostPrefix,
  jupyterHubSessionIdCookie,
  sessionIdCookie,
} from '../platform/protocol/cookie-names.ts';
import { loadLanguages } from '../platform/texts/languages.ts';
import { localizedPhrase, localizedTextIn } from '../platform/texts/text.ts';
import type { SiteSetting } from '../traffic/gateway/feed-events.ts';

/** The addresses of the hub, and the branding of its pages. */
export type Site = Awaited<ReturnType<typeof openSite>>;

/** The settings that the site follows from. */
export type SiteConfig = Pick<Config, 'basePath' | 'publicUrl' | 'connectUrl' | 'subdomainHost'> & {
  readonly Hub: Pick<Config['Hub'], SiteSetting> &
    Partial<Pick<Config['Hub'], 'language' | 'languages_dir'>>;
  /** Where relative paths begin; left out where there are none. */
  readonly directory?: string;
};

export async function openSite(
  { config, log }: { readonly config: SiteConfig; readonly log: Logger },
  version: string,
) {
  const { Hub, basePath, publicUrl } = config;
  const urls = createPageUrls(basePath);
  const apiPath = `${urls.hub}api/`;
  const assets = await loadAssets({ staticUrl: `${urls.hub}static/` });
  const isHttps = publicUrl.protocol === 'https:';
  const hstsSeconds = isHttps ? Hub.hsts_max_age_days * 86_400 : undefined;
  const origins = createOrigins({
    publicUrl,
    basePath,
    subdomainHost: config.subdomainHost,
    ownLabel: ownHostLabel(config),
  });
  const jupyterHub = jupyterHubCompatibility(Hub.environment_prefixes, version);
  // On origins of their own, servers have a cookie of their own for it.
  const canHaveHostCookie = isHttps && basePath === '/' && !origins.areSeparate;
  const languages = await loadLanguages(languageSettingsOf(config));
  const branding = { current: builtInBranding };
  const layout = {
    get hubTitle() {
      return localizedPhrase(branding.current.title);
    },
    urls,
    assets,
    branding,
  };
  const announced = createAnnounced();
  return {
    isHttps,
    hstsSeconds,
    origins,
    urls,
    apiPath,
    /** Where servers and services reach the API, without a slash at its end. */
    apiUrl: new URL(apiPath.slice(0, -1), config.connectUrl).href,
    assets,
    branding,
    /** The title where nobody's language is known, or many read it. */
    titleForAll: () => localizedTextIn(branding.current.title, languages.all[0]?.tag ?? 'en'),
    faviconUrl: () => assets.url(branding.current.favicon ?? 'favicon.svg'),
    /** From now on pages look so. */
    setBranding(own: SiteBranding): void {
      assets.setCustomFiles(own.files);
      assets.setAccentColour(own.branding.accentColour);
      branding.current = own.branding;
    },
    /** What gateways are told of it. */
    publishedBranding: {
      get current(): PublishedBranding {
        return { ...branding.current, languages: languages.own };
      },
    },
    /** The same in a gateway, whose hub has the files. An older hub may not know all of it. */
    followBranding({
      languages: own = { catalogues: {} },
      ...reported
    }: Partial<PublishedBranding>): void {
      languages.follow(own);
      assets.setAccentColour(reported.accentColour);
      branding.current = { ...builtInBranding, ...reported };
    },
    /** What every page has in common. */
    layout,
    languages,
    announced,
    errorAnswers: createErrorAnswers({
      renderErrorPage: createErrorPageRenderer(layout, languages, announced.shown),
      hstsSeconds,
      log,
    }),
    clientAddress: createClientAddressReader(Hub.trusted_proxies, {
      trustForwardedHost: Hub.trust_forwarded_host,
    }),
    jupyterHub,
    /** The name of the session id that the server guard believes: one that no neighbour can plant, where that can be. */
    serverGuardSessionIdCookie: canHaveHostCookie ? hostPrefix + sessionIdCookie : sessionIdCookie,
  };
}

/**
 * The version of JupyterHub whose REST API and variables the hub offers. Its software compares it
 * with its own to choose how to ask, and refuses to start when it is not a version in Python's sense.
 */
const jupyterHubVersion = '5.0.0';

/** Decides what is different for JupyterHub software; it comes with the prefix `JUPYTERHUB` in `Hub.environment_prefixes`. */
function jupyterHubCompatibility(environmentPrefixes: readonly string[], hubVersion: string) {
  const isOn = environmentPrefixes.includes('JUPYTERHUB');
  return {
    /** What `GET /hub/api/` gives as `version`. */
    apiVersion: isOn ? jupyterHubVersion : hubVersion,
    /** Headers of every answer. */
    headers: isOn ? { 'X-JupyterHub-Version': jupyterHubVersion } : {},
    /** Further names under which browsers get the session id. */
    sessionIdAliases: isOn ? [jupyterHubSessionIdCookie] : [],
    /** Whether the addresses that JupyterHub software links to, beside the API, are answered. */
    hasAddresses: isOn,
  };
}
