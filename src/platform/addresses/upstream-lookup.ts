import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isMetadataAddress } from './host-address.ts';

/**
 * Finds the addresses of an upstream's name as `dns.lookup` does, without those where machines keep their own
 * credentials: a name that is harmless when it is given may mean one of them later. An address itself
 * is never looked up, so that a configuration can still name one.
 */
export const lookupUpstream = lookupOnly(
  (address) => !isMetadataAddress(address),
  'a link-local or metadata address, where clouds keep credentials',
);

/** As `dns.lookup`, but finds some addresses only; `otherwise` says in an error what another is. */
export function lookupOnly(
  isAllowed: (address: string) => boolean,
  otherwise: string,
): LookupFunction {
  return (hostname, options, done) => {
    dns.lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) {
        done(error, '', 0);
        return;
      }
      const allowed = found.filter(({ address }) => isAllowed(address));
      const [first] = allowed;
      if (first === undefined) {
        const message = `${hostname} is ${found[0]?.address ?? 'nothing'}, ${otherwise}`;
        done(Object.assign(new Error(message), { code: 'EADDRNOTAVAIL' }), '', 0);
      } else if (options.all === true) done(null, allowed);
      else done(null, first.address, first.family);
    });
  };
}
