import { firstLocalAddressIn, isAddressRange } from '../addresses/local-addresses.ts';
import type { ConfigProblem } from '../errors.ts';
import { contestedHeader, forwardingOf } from '../protocol/identity-headers.ts';
import { accountAuthenticatorOf, usersNamedIn } from './account-authenticator.ts';
import { findAcmeProblems } from './acme-names.ts';
import { socketPathOf } from './bind-address.ts';
import type { Config } from './config.ts';
import { cookieSecretProblem } from './cookie-secret.ts';
import { findExtraRouteProblems, findIdentityWarnings } from './extra-route-problems.ts';
import { findSubdomainProblems, findSubdomainWarnings } from './subdomain-host.ts';
import { findVolumeProblems } from './volume-problems.ts';

type Report = (path: string, message: string) => void;

/** Finds settings that are fine one by one but cannot be true together, or not in this world. */
export function findContradictions(config: Config): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const report: Report = (path, message) => problems.push({ path, message });
  checkAddresses(config, report);
  checkHub(config, report);
  checkAuthenticators(config, report);
  checkSpawner(config, report);
  checkProxy(config, report);
  return [
    ...problems,
    ...findAcmeProblems(config),
    ...findExtraRouteProblems(config),
    ...findSubdomainProblems(config),
    ...findVolumeProblems(config),
  ];
}

/** Points at settings that work but are probably not what was meant. */
export function findWarnings(config: Config): ConfigProblem[] {
  const { Hub, Authenticator } = config;
  const warnings: ConfigProblem[] = [];
  const report: Report = (path, message) => warnings.push({ path, message });
  const isHttps = new URL(Hub.bind_url).protocol === 'https:';
  if (Hub.public_url === undefined && isWildcard(new URL(Hub.bind_url).hostname)) {
    report('Hub.public_url', `is not set; browsers are sent to ${config.publicUrl.href}`);
  }
  if (config.subdomainHost === undefined && !tellsHowRequestsComeAbout(config.publicUrl)) {
    report(
      Hub.public_url === undefined ? 'Hub.bind_url' : 'Hub.public_url',
      `${config.publicUrl.origin} is plain http: browsers do not say there whether a person or a script asks, so a ` +
        "page of one user's server can act on the hub as the user who opens it; use https",
    );
  }
  if (Hub.default_server_name !== undefined && !Hub.allow_named_servers) {
    report('Hub.default_server_name', 'has no effect because allow_named_servers is false');
  }
  if (Authenticator.allow_all && Authenticator.allowed_users.length > 0) {
    report('Authenticator.allowed_users', 'has no effect because allow_all is true');
  }
  for (const key of ['certificates', 'client_authorities', 'redirect_bind_url'] as const) {
    if (isHttps || (Hub[key]?.length ?? 0) === 0) continue;
    report(`Hub.${key}`, 'has no effect because bind_url is no https:// address');
  }
  if (isHttps && config.publicUrl.protocol !== 'https:') {
    report('Hub.public_url', `begins with http://, and bind_url with https://`);
  }
  warnOfForgedAddresses(config, report);
  warnOfIdleProxySettings(config, report);
  const blocked = new Set(Authenticator.blocked_users);
  for (const key of ['admin_users', 'allowed_users'] as const) {
    const both = Authenticator[key].filter((name) => blocked.has(name));
    if (both.length > 0) report(`Authenticator.${key}`, `${both.join(', ')}: blocked all the same`);
  }
  return [...warnings, ...findIdentityWarnings(config), ...findSubdomainWarnings(config)];
}

/** What concerns proxies before the hub, where none is trusted; and who asks about apps, where there are none. */
function warnOfIdleProxySettings({ Hub, Proxy: proxy }: Config, report: Report): void {
  const trustsProxy = Hub.trusted_proxies.length > 0 || socketPathOf(Hub.bind_url) !== undefined;
  if (Hub.trust_forwarded_host && !trustsProxy) {
    report('Hub.trust_forwarded_host', 'has no effect because trusted_proxies is empty');
  }
  const asked = Object.entries(proxy.extra_routes).filter(
    ([, { access }]) => access === 'forward-auth',
  );
  if (asked.length === 0 && proxy.forward_auth_headers !== 'forwarded') {
    report('Proxy.forward_auth_headers', 'has no effect: no route has "access": "forward-auth"');
  }
  if (trustsProxy) return;
  for (const [spec] of asked) {
    const fix = 'name its address in Hub.trusted_proxies';
    report(`Proxy.extra_routes.${spec}.access`, `no proxy may ask about it: ${fix}`);
  }
}

/** A proxy on this machine has no address that others on the machine do not have too. */
function warnOfForgedAddresses({ Hub, Spawner, spawners }: Config, report: Report): void {
  const commands = [Spawner.cmd, ...Spawner.profiles.map(({ cmd }) => cmd)];
  const hasLocalServers =
    spawners.some((spawner) => spawner.class === 'local-process') &&
    commands.some((command) => command !== undefined);
  if (!hasLocalServers) return;
  const address = firstLocalAddressIn(Hub.trusted_proxies.filter(isAddressRange));
  if (address === undefined) return;
  const isOnSocket = socketPathOf(Hub.bind_url) !== undefined;
  report(
    'Hub.trusted_proxies',
    `${address} is this machine, on which users' servers run: they can give any address as theirs in ` +
      'X-Forwarded-For, and so lock the logins of another address out, get around the limits for an address and ' +
      'put false ones into the log; ' +
      (isOnSocket
        ? 'remove it, the socket in bind_url is trusted without'
        : 'let the hub listen on a Unix socket that only the proxy may open (bind_url), or run the proxy elsewhere'),
  );
}

/**
 * Whether browsers send Sec-Fetch-* to a URL: to potentially trustworthy ones only (Fetch Metadata Request
 * Headers §2.1; Secure Contexts §3.1).
 */
function tellsHowRequestsComeAbout({ protocol, hostname }: URL): boolean {
  if (protocol === 'https:') return true;
  return /^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost|.+\.localhost)$/.test(hostname);
}

/** Where the configuration asks visitors for a certificate. */
function needingClientCertificates({ Hub, Spawner, Proxy: proxy }: Config): string[] {
  const places = [
    ...placesOfServers(Spawner),
    ...Hub.services.map((service, at) => [`Hub.services[${at}]`, service] as const),
    ...Object.entries(proxy.extra_routes).map(
      ([spec, route]) => [`Proxy.extra_routes.${spec}`, route] as const,
    ),
  ];
  return places
    .filter(([, { limits }]) => limits?.client_certificate !== undefined)
    .map(([path]) => `${path}.limits.client_certificate`);
}

/** Whether visitors are asked for certificates, those of the hub's own address. */
export function asksForCertificates({ bind_url, client_authorities }: Config['Hub']): boolean {
  return new URL(bind_url).protocol === 'https:' && client_authorities !== undefined;
}

/** Where it is said how users' servers are reached. */
function placesOfServers(spawner: Config['Spawner']) {
  const profiles = spawner.profiles.map((each, at) => [`Spawner.profiles[${at}]`, each] as const);
  return [['Spawner', spawner] as const, ...profiles];
}

function checkAddresses(config: Config, report: Report): void {
  const { Hub, basePath } = config;
  const bind = new URL(Hub.bind_url);
  const internal = new URL(Hub.hub_bind_url);
  const isSamePort = bind.port === internal.port && bind.port !== '0';
  const isSameHost =
    bind.hostname === internal.hostname ||
    isWildcard(bind.hostname) ||
    isWildcard(internal.hostname);
  if (isSamePort && isSameHost) {
    report('Hub.hub_bind_url', `needs another port than bind_url (${bind.port || 80})`);
  }
  if (bind.protocol === 'https:' && Hub.certificates.length === 0 && Hub.acme === undefined) {
    report('Hub.certificates', 'is needed, or acme, since bind_url is an https:// address');
  }
  if (Hub.internal_ssl !== (internal.protocol === 'https:')) {
    report(
      'Hub.internal_ssl',
      Hub.internal_ssl
        ? 'needs an https:// hub_bind_url, such as https://127.0.0.1:8080'
        : 'must be true, since hub_bind_url is an https:// address: only the hub itself makes certificates for it',
    );
  }
  for (const path of needingClientCertificates(config)) {
    if (asksForCertificates(Hub)) break;
    report(path, 'needs Hub.client_authorities and an https:// bind_url: nobody could pass');
  }
  if (Hub.client_revocation_lists.length > 0 && Hub.client_authorities === undefined) {
    report('Hub.client_revocation_lists', 'needs client_authorities');
  }
  if (Hub.gateways > 0 && socketPathOf(Hub.bind_url) !== undefined) {
    report(
      'Hub.gateways',
      'needs a port in bind_url: several processes cannot share a Unix socket',
    );
  }
  for (const [key, url] of [
    ['bind_url', bind],
    ['hub_bind_url', internal],
  ] as const) {
    if (url.username !== '' || url.password !== '') report(`Hub.${key}`, 'cannot hold a user name');
  }
  if (socketPathOf(Hub.bind_url) !== undefined && Hub.public_url === undefined) {
    report(
      'Hub.public_url',
      'is needed, since bind_url is a socket: the address of the proxy in front of it',
    );
  }
  if (!isBasePath(basePath)) {
    report(
      'Hub.bind_url',
      'its path may hold letters, digits, spaces (%20) and . _ ~ - @ between single slashes',
    );
  }
  if (!isRootOr(basePath, internal)) {
    report('Hub.hub_bind_url', 'takes no path; the base URL is the path of bind_url');
  }
  checkConnectUrl(config, report);
  if (Hub.public_url === undefined) return;
  const publicUrl = new URL(Hub.public_url);
  if (publicUrl.username !== '' || publicUrl.search !== '' || publicUrl.hash !== '') {
    report('Hub.public_url', 'cannot hold a user name, a query or a fragment');
  }
  if (!isRootOr(basePath, publicUrl)) {
    report('Hub.public_url', `its path must be that of bind_url (${basePath})`);
  }
}

/** What servers and services are told must lead somewhere. */
function checkConnectUrl({ Hub, basePath, connectUrl }: Config, report: Report): void {
  const path = 'Hub.hub_connect_url';
  if (isWildcard(connectUrl.hostname)) {
    report(
      path,
      Hub.hub_connect_url === undefined
        ? `is needed, since no one can connect to ${connectUrl.origin} (hub_bind_url): the address at which servers ` +
            'and services reach the hub, such as http://10.0.0.5:8080'
        : `no one can connect to ${connectUrl.hostname}; give an address at which servers and services reach the hub`,
    );
  }
  if (Hub.internal_ssl && Hub.hub_connect_url === undefined) {
    report(
      path,
      'is needed with internal_ssl, since servers and services have no certificate of the hub: where they reach it otherwise, such as at public_url',
    );
  }
  if (Hub.hub_connect_url === undefined) return;
  if (connectUrl.username !== '' || connectUrl.password !== '') {
    report(path, 'cannot hold a user name');
  }
  if (!isRootOr(basePath, connectUrl))
    report(path, 'takes no path; the base URL is the path of bind_url');
}

/** Whether a path, encoded as in a URL, can be that of everything the hub serves. */
function isBasePath(path: string): boolean {
  return !/%2f/i.test(path) && /^\/(?:[\p{L}\p{M}\p{N} ._~@-]+\/)*$/u.test(decoded(path));
}

/** Whether a URL has no path of its own, or that of the hub, however it is encoded. */
function isRootOr(basePath: string, url: URL): boolean {
  const path = withSlash(url.pathname);
  return path === '/' || decoded(path) === decoded(basePath);
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function checkHub({ Hub }: Config, report: Report): void {
  for (const [index, key] of (Hub.cookie_secret ?? []).entries()) {
    const problem = cookieSecretProblem(key.reveal());
    if (problem !== undefined) report(`Hub.cookie_secret[${index}]`, problem);
  }
  for (const [index, range] of Hub.trusted_proxies.entries()) {
    if (!isAddressRange(range)) {
      report(
        `Hub.trusted_proxies[${index}]`,
        'is neither an IP address nor a range such as 10.0.0.0/8',
      );
    }
  }
  reportRepeated(Hub.load_groups, 'Hub.load_groups', 'group', report);
  if (Hub.api_page_default_limit > Hub.api_page_max_limit) {
    report('Hub.api_page_default_limit', 'is more than api_page_max_limit');
  }
}

function checkAuthenticators(config: Config, report: Report): void {
  const { Authenticator, authenticators } = config;
  checkAccountAuthenticator(config, report);
  reportRepeated(authenticators, 'Hub.authenticator_class', 'authenticator', report);
  if (Authenticator.auto_login && authenticators.length > 1) {
    report('Authenticator.auto_login', 'needs exactly one authenticator to go to');
  }
  for (const name of Authenticator.second_factor_elsewhere) {
    if (authenticators.some((each) => each.name === name)) continue;
    report('Authenticator.second_factor_elsewhere', `there is no authenticator ${name}`);
  }
  if (Authenticator.lockout_delay > Authenticator.lockout_max_delay) {
    report('Authenticator.lockout_delay', 'is longer than lockout_max_delay');
  }
}

/** Names mean a person only at one authenticator: at another a stranger may have chosen the same. */
function checkAccountAuthenticator(config: Config, report: Report): void {
  const { authenticators } = config;
  const choice = authenticators.map(({ name }) => JSON.stringify(name)).join(' or ');
  const chosen = accountAuthenticatorOf(config);
  const path = 'Authenticator.account_authenticator';
  if (chosen !== undefined) {
    if (authenticators.every(({ name }) => name !== chosen)) report(path, `is to be ${choice}`);
    return;
  }
  const [first] = usersNamedIn(config);
  if (first === undefined) return;
  report(
    path,
    `is needed: say whether ${first} and the other users named here come by ${choice}. Choose the one ` +
      'where no stranger can take such a name',
  );
}

function checkSpawner({ Spawner, spawners, hooks }: Config, report: Report): void {
  for (const [path, own] of placesOfServers(Spawner)) {
    const contested = contestedHeader({
      identity_headers: own.identity_headers ?? Spawner.identity_headers,
      headers: own.headers ?? Spawner.headers,
    });
    if (contested !== undefined) {
      report(`${path}.headers.request`, `${contested} is one of identity_headers`);
    }
    if ((own.access ?? Spawner.access) === 'gateway') continue;
    const isForwarded = own.host === 'upstream' ? 'host' : 'identity_headers';
    const key = own.strip_prefix
      ? 'strip_prefix'
      : forwardingOf({ ...own, headers: undefined }) && isForwarded;
    if (key === undefined) continue;
    report(`${path}.${key}`, 'needs "access": "gateway"; hub-singleuser has flags for it');
  }
  reportRepeated(spawners, 'Spawner.class', 'spawner', report);
  reportRepeated(hooks, 'Spawner.hooks', 'hook', report);
  for (const [index, { spawner }] of Spawner.profiles.entries()) {
    if (spawner === undefined || spawners.some(({ name }) => name === spawner)) continue;
    const choice = spawners.map(({ name }) => JSON.stringify(name)).join(' or ');
    report(`Spawner.profiles[${index}].spawner`, `is to be ${choice}, a spawner of Spawner.class`);
  }
  reportRepeated(Spawner.profiles, 'Spawner.profiles', 'profile', report);
  reportRepeated(Spawner.budgets, 'Spawner.budgets', 'budget', report);
  for (const key of ['start_at', 'budgets'] as const) {
    for (const [index, { profile }] of Spawner[key].entries()) {
      if (profile === undefined || Spawner.profiles.some(({ name }) => name === profile)) continue;
      report(`Spawner.${key}[${index}].profile`, 'names no profile of Spawner.profiles');
    }
  }
  if (Spawner.profiles.filter((profile) => profile.default).length > 1) {
    report('Spawner.profiles', 'has more than one default');
  }
}

function checkProxy({ Proxy: proxy }: Config, report: Report): void {
  if (proxy.request_timeout > 0 && proxy.headers_timeout > proxy.request_timeout) {
    report('Proxy.headers_timeout', 'is longer than request_timeout');
  }
}

function reportRepeated(
  entries: readonly { readonly name: string }[],
  path: string,
  noun: string,
  report: Report,
): void {
  const firstIndices = new Map<string, number>();
  for (const [index, { name }] of entries.entries()) {
    const first = firstIndices.get(name);
    if (first === undefined) firstIndices.set(name, index);
    else
      report(
        `${path}[${index}].name`,
        `${noun} "${name}" stands twice: ${path}[${first}] has it too`,
      );
  }
}

/** Whether a host name of a URL means every address of the machine. */
export function isWildcard(hostname: string): boolean {
  return hostname === '0.0.0.0' || hostname === '[::]';
}

function withSlash(pathname: string): string {
  return pathname.endsWith('/') ? pathname : `${pathname}/`;
}
