/** A certificate and its key, each in PEM; behind the certificate the chain up to the authority. */
export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate that browsers are shown. */
export interface ServedCertificate extends KeyPair {
  /** Where it comes from, for people: the path of its file as it is configured, or what ordered it. */
  readonly origin: string;
  /** DNS names in lower case, such as `hub.example.org` and `*.hub.example.org`. */
  readonly names: readonly string[];
  readonly notAfter: Date;
}

/** A certificate for the challenge tls-alpn-01, which is shown to nobody but the authority (RFC 8737 §3). */
export interface ChallengeCertificate extends KeyPair {
  readonly name: string;
}

/** Where certificates come from: files, an authority, or the hub of a gateway. */
export interface CertificateSource {
  /** Those to serve now. Where several have a name, the first of them is for it. */
  certificates(): readonly ServedCertificate[];
  /** Those of the challenges that are open now. */
  challenges(): readonly ChallengeCertificate[];
  /** Calls back when either list has changed; returns what ends that. */
  onChange(listener: () => void): () => void;
}

/** Several sources as one, the first added first. */
export interface CertificateSources extends CertificateSource {
  add(source: CertificateSource): void;
}

export function createCertificateSources(): CertificateSources {
  const sources: CertificateSource[] = [];
  const listeners = new Set<() => void>();
  function tell(): void {
    for (const listener of listeners) listener();
  }
  return {
    certificates: () => sources.flatMap((source) => source.certificates()),
    challenges: () => sources.flatMap((source) => source.challenges()),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    add(source) {
      sources.push(source);
      source.onChange(tell);
      tell();
    },
  };
}
