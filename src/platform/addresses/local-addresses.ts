import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';

/** Addresses or CIDR ranges as a list that can be asked. */
export function createAddressList(entries: readonly string[]): BlockList {
  const list = new BlockList();
  for (const entry of entries) {
    const [address = '', prefixLength] = entry.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefixLength === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(prefixLength), family);
  }
  return list;
}

/**
 * The first address of this machine, loopback included, that is in a list of addresses or CIDR ranges:
 * each program on this machine, a user's server among them, can connect from it. Undefined when there
 * is none.
 */
export function firstLocalAddressIn(entries: readonly string[]): string | undefined {
  const list = createAddressList(entries);
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  // All of 127.0.0.0/8 is this machine, whatever an interface says.
  const named = entries
    .filter((entry) => entry.startsWith('127.'))
    .map((e) => e.split('/')[0] ?? '');
  return ['127.0.0.1', '::1', ...named, ...own.map(({ address }) => address)].find(
    (address) => isIP(address) !== 0 && list.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4'),
  );
}

/** Whether text is an IP address or a CIDR range. */
export function isAddressRange(text: string): boolean {
  const [address = '', length, ...more] = text.split('/');
  const family = isIP(address);
  if (family === 0 || more.length > 0) return false;
  if (length === undefined) return true;
  if (!/^\d{1,3}$/.test(length)) return false;
  try {
    new BlockList().addSubnet(address, Number(length), family === 4 ? 'ipv4' : 'ipv6');
    return true;
  } catch {
    // Node refuses a length that the address family does not have.
    return false;
  }
}
