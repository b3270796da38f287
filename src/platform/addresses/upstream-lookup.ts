import dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isMetadataAddress } from './host-address.ts';

/**
 * Finds the addresses of an upstream's name as `dns.lookup` does, without those where machines keep their own
 * credentials: a name that is harmless when it is given may mean one of them later. An address itself
 * is never looked up, so that a configuration can still name one.
 */
export const lookupUpstream: LookupFunction = (hostname, options, done) => {
  dns.lookup(hostname, { ...options, all: true }, (error, found) => {
    if (error !== null) {
      done(error, '', 0);
      return;
    }
    const allowed = found.filter(({ address }) => !isMetadataAddress(address));
    const [first] = allowed;
    if (first === undefined) done(refusal(hostname, found[0]?.address), '', 0);
    else if (options.all === true) done(null, allowed);
    else done(null, first.address, first.family);
  });
};

function refusal(hostname: string, address = 'nothing'): NodeJS.ErrnoException {
  const message = `${hostname} is ${address}, a link-local or metadata address, where clouds keep credentials`;
  return Object.assign(new Error(message), { code: 'EADDRNOTAVAIL' });
}
