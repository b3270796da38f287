import { isIP } from 'node:net';
import type { ConfigProblem } from '../errors.ts';
import type { Config } from './config.ts';
import { placeOf } from './route-services.ts';

/** So many names go into a certificate of Let's Encrypt. */
const maxNames = 100;

/** The names for which `Hub.acme` gets a certificate: those of all hosts that browsers may ask for. */
export function acmeNames(config: Config): string[] {
  const { publicUrl, subdomainHost, Hub, Proxy: proxy } = config;
  const routeHosts = Object.keys(proxy.extra_routes).map((spec) => placeOf(spec, config).host);
  const domain = subdomainHost?.hostname;
  const hosts = [publicUrl.hostname, Hub.proxy_api?.host, ...routeHosts, domain];
  const names = new Set(hosts.filter((host) => host !== undefined));
  if (domain === undefined) return [...names];
  const isCovered = (name: string) => name.replace(/^[^.]+\./, '') === domain;
  return [...[...names].filter((name) => !isCovered(name)), `*.${domain}`];
}

/** Finds what keeps `Hub.acme` from getting a certificate. */
export function findAcmeProblems(config: Config): ConfigProblem[] {
  const { acme } = config.Hub;
  if (acme === undefined) return [];
  const problems: ConfigProblem[] = [];
  const report = (key: string, message: string) =>
    problems.push({ path: `Hub.acme${key}`, message });
  const names = acmeNames(config);
  if (config.publicUrl.protocol !== 'https:')
    report('', `needs an https:// address in public_url, not ${config.publicUrl.origin}`);
  if (new URL(config.Hub.bind_url).protocol !== 'https:')
    report('', 'needs an https:// address in bind_url, such as https://0.0.0.0:443/');
  for (const name of names.filter((each) => isIP(each.replaceAll(/[[\]]/g, '')) !== 0))
    report('', `is for names: no certificate is to be had for ${name}`);
  if (names.length > maxNames)
    report('', `has ${names.length} names, and a certificate has ${maxNames} at most`);
  const wildcard = names.find((name) => name.startsWith('*.'));
  if (wildcard !== undefined && acme.challenge !== 'dns-01') {
    report(
      '.challenge',
      `must be "dns-01" with subdomain_host: users' hosts share a certificate for ${wildcard}, which authorities give by ` +
        "that alone; one for each user would be more than they give (Let's Encrypt: 50 a week)",
    );
  }
  if (acme.challenge === 'tls-alpn-01' && config.Hub.gateways > 0)
    report('.challenge', 'must be "http-01" or "dns-01" with gateways, which answer no other');
  if (acme.challenge === 'http-01' && config.Hub.redirect_bind_url === undefined)
    report('.challenge', 'needs redirect_bind_url for "http-01", such as http://0.0.0.0:80/');
  const command = acme.dns_command?.join(' ') ?? '';
  if (
    acme.challenge === 'dns-01' &&
    !['{action}', '{name}', '{value}'].every((word) => command.includes(word))
  )
    report(
      '.dns_command',
      'is needed for dns-01, with {action}, {name} and {value} among its words',
    );
  if (acme.challenge !== 'dns-01' && command !== '')
    report('.dns_command', `has no use for ${acme.challenge}: set challenge to "dns-01"`);
  return problems;
}
