import type { SecureContext } from 'node:tls';
import type { CertificateSource, ServedCertificate } from './certificate-source.ts';
import { createContext, sessionContextOf } from './secure-context.ts';

/** Which certificate is shown to whom. */
export interface CertificateChoice {
  /** For a server name (RFC 6066 §3): that of the name, else of its wildcard, else the first; undefined where there is none. */
  contextFor(serverName: string): SecureContext | undefined;
  /** Whether a certificate is for this name. */
  covers(name: string): boolean;
  /** Shown to those who name no server. */
  readonly first: ServedCertificate | undefined;
}

export function createCertificateChoice(source: CertificateSource): CertificateChoice {
  let contexts = new WeakMap<ServedCertificate, SecureContext>();
  let trust = sessionContextOf(source);
  let byName = indexByName(source);
  let first = source.certificates()[0];
  source.onChange(() => {
    const former = trust;
    trust = sessionContextOf(source);
    if (trust !== former) contexts = new WeakMap();
    byName = indexByName(source);
    first = source.certificates()[0];
  });

  function find(name: string): ServedCertificate | undefined {
    const plain = name.toLowerCase().replace(/\.$/, '');
    return byName.get(plain) ?? byName.get(plain.replace(/^[^.]+/, '*'));
  }

  return {
    contextFor(serverName) {
      const chosen = find(serverName) ?? first;
      if (chosen === undefined) return undefined;
      let context = contexts.get(chosen);
      if (context === undefined) {
        context = createContext(chosen, source);
        contexts.set(chosen, context);
      }
      return context;
    },
    covers: (name) => find(name) !== undefined,
    get first() {
      return first;
    },
  };
}

function indexByName(source: CertificateSource): ReadonlyMap<string, ServedCertificate> {
  const byName = new Map<string, ServedCertificate>();
  for (const certificate of source.certificates()) {
    for (const name of certificate.names) {
      if (!byName.has(name)) byName.set(name, certificate);
    }
  }
  return byName;
}
