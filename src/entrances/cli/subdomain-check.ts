import { lookup } from 'node:dns/promises';
import { checkServerIdentity, connect } from 'node:tls';
import type { Config } from '../../platform/config/config.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import type { PreparedPlugins } from '../../plugin/host/prepare-plugins.ts';

/** Finds the address of a host; rejects as `dns.lookup` does. */
export type FindAddress = (hostname: string) => Promise<string>;

const path = 'Hub.subdomain_host';
/** A host that no user or service has. */
const probeLabel = 'hub--check';
const timeoutMs = 3_000;

/** Recommends an origin for each user where users' servers run code and all share one origin. */
export function recommendSubdomains(
  { subdomainHost, publicUrl }: Config,
  { spawners }: Pick<PreparedPlugins, 'spawners'>,
): ConfigProblem[] {
  if (subdomainHost !== undefined || spawners.length === 0) return [];
  return [
    {
      path,
      message:
        `is not set, so pages of users' servers share the origin ${publicUrl.origin} with the hub and with one another; ` +
        'give each an origin of its own (docs/how-to/run-behind-tls.md)',
    },
  ];
}

/**
 * Looks, as far as that goes from here, whether hosts below `Hub.subdomain_host` have an address and a certificate:
 * one for the domain itself does not hold for them. Says nothing where it cannot tell.
 */
export async function checkSubdomainSetup(
  { subdomainHost }: Pick<Config, 'subdomainHost'>,
  findAddress: FindAddress = addressOf,
): Promise<ConfigProblem[]> {
  if (subdomainHost === undefined) return [];
  const { hostname, port, protocol } = subdomainHost;
  const probe = `${probeLabel}.${hostname}`;
  let address: string;
  try {
    address = await findAddress(probe);
  } catch (error) {
    if (!isNotFound(error)) return [];
    const message = `${probe} has no address: make a DNS record for *.${hostname}`;
    return [{ path, message }];
  }
  if (protocol !== 'https:') return [];
  const names = await namesThatLack(probe, address, Number(port || 443));
  if (names === undefined) return [];
  const message = `the certificate at ${subdomainHost.host} is for ${names}: it must also be for *.${hostname}`;
  return [{ path, message }];
}

/** What the certificate there is for, if not for a host; undefined also where there is none to see. */
function namesThatLack(host: string, address: string, port: number): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  // The one that browsers would be shown; who signed it is another matter.
  const socket = connect({ host: address, port, servername: host, rejectUnauthorized: false });
  socket.setTimeout(timeoutMs, () => socket.destroy());
  socket.once('secureConnect', () => {
    const certificate = socket.getPeerCertificate();
    const isCovered = checkServerIdentity(host, certificate) === undefined;
    resolve(isCovered ? undefined : namesOf(certificate));
    socket.destroy();
  });
  socket.on('error', () => undefined);
  socket.once('close', () => resolve(undefined));
  return promise;
}

function namesOf({
  subjectaltname = '',
  subject,
}: ReturnType<ReturnType<typeof connect>['getPeerCertificate']>): string {
  const names = subjectaltname.split(', ').flatMap((name) => /^DNS:(.+)$/.exec(name)?.[1] ?? []);
  return names.length > 0 ? names.slice(0, 5).join(', ') : String(subject?.CN ?? 'no host');
}

async function addressOf(hostname: string): Promise<string> {
  // Names below localhost are this machine (RFC 6761 §6.3), whatever the resolver says.
  if (hostname.endsWith('.localhost')) return '127.0.0.1';
  return (await lookup(hostname)).address;
}

function isNotFound(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOTFOUND';
}
