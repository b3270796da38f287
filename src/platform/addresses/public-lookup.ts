import { isIP, type LookupFunction } from 'node:net';
import { isLocalName, plainHost } from './host-address.ts';
import { createAddressList } from './local-addresses.ts';
import { lookupOnly } from './upstream-lookup.ts';

/** Everything but what is reached from anywhere: the registries of RFC 6890, multicast, and what IPv6 embeds of IPv4. */
const specialAddresses = createAddressList([
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
]);
/** Global unicast (RFC 4291 §2.4), without what is special in it. */
const globalIpv6 = createAddressList(['2000::/3']);
const specialIpv6 = createAddressList(['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20']);

/** Whether the host of a URL may be a public one: a name, or an address that is reached from anywhere. */
export function mayBePublic(hostname: string): boolean {
  const host = plainHost(hostname);
  return isIP(host) === 0 ? !isLocalName(host) : isPublicAddress(host);
}

function isPublicAddress(address: string): boolean {
  const host = plainHost(address);
  return isIP(host) === 6
    ? globalIpv6.check(host, 'ipv6') && !specialIpv6.check(host, 'ipv6')
    : !specialAddresses.check(host, 'ipv4');
}

/** Finds the public addresses of a name as `dns.lookup` does; an address itself is never looked up. */
export const lookupPublic: LookupFunction = lookupOnly(isPublicAddress, 'no public address');
