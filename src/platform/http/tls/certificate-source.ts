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

/** Where certificates come from: files, an authority, or the hub of a gateway. */
export interface CertificateSource {
  /** Those to serve now. Where several have a name, the first of them is for it. */
  certificates(): readonly ServedCertificate[];
  /** Calls back when the list has changed. */
  onChange(listener: () => void): void;
  /** Authorities whose certificates clients may show, in PEM; those of now. */
  readonly clientAuthorities?: string | undefined;
  /** What these authorities have revoked, as lists in PEM; those of now. With any, each authority needs one. */
  readonly revocationLists?: readonly string[] | undefined;
  /** Whether clients that show none are refused in the handshake, and those who do are no visitors. */
  readonly requiresClient?: boolean;
  /**
   * The answer to an open challenge tls-alpn-01 about a name, which is shown to nobody but the authority (RFC 8737 §3).
   * Left out where there are none.
   */
  readonly findChallenge?: ((name: string) => Promise<KeyPair | undefined>) | undefined;
  /** The answer to a challenge http-01 at a path (RFC 8555 §8.3), if one is open there. */
  readonly answerHttpChallenge?: ((pathname: string) => Promise<string | undefined>) | undefined;
}

/** Several sources as one, the first added first. */
export interface CertificateSources extends CertificateSource {
  add(source: CertificateSource): void;
}

export function createCertificateSources(clientAuthorities?: string): CertificateSources {
  const sources: CertificateSource[] = [];
  const listeners: (() => void)[] = [];
  function tell(): void {
    for (const listener of listeners) listener();
  }
  return {
    clientAuthorities,
    get revocationLists() {
      return sources.flatMap(({ revocationLists = [] }) => revocationLists);
    },
    certificates: () => sources.flatMap((source) => source.certificates()),
    onChange: (listener) => void listeners.push(listener),
    get findChallenge() {
      return firstOf(sources.flatMap(({ findChallenge }) => findChallenge ?? []));
    },
    get answerHttpChallenge() {
      return firstOf(sources.flatMap(({ answerHttpChallenge }) => answerHttpChallenge ?? []));
    },
    add(source) {
      sources.push(source);
      source.onChange(tell);
      tell();
    },
  };
}

type Find<Found> = (about: string) => Promise<Found | undefined>;

/** What the first finds that finds something; undefined where there are none to ask. */
function firstOf<Found>(finders: readonly Find<Found>[]): Find<Found> | undefined {
  if (finders.length === 0) return undefined;
  return async (about) =>
    (await Promise.all(finders.map((find) => find(about)))).find((found) => found !== undefined);
}

/** By what certificates of clients are judged. */
export type ClientTrust = Pick<CertificateSource, 'clientAuthorities' | 'revocationLists'>;

/** Certificates that are handed over whenever there are others. */
export interface HeldCertificates extends CertificateSource {
  hold(certificates: readonly ServedCertificate[], trust?: ClientTrust): void;
}

export function createHeldCertificates(
  options: Pick<CertificateSource, 'requiresClient'> = {},
): HeldCertificates {
  let held: readonly ServedCertificate[] = [];
  let heldTrust: ClientTrust = {};
  const listeners: (() => void)[] = [];
  return {
    ...options,
    get clientAuthorities() {
      return heldTrust.clientAuthorities;
    },
    get revocationLists() {
      return heldTrust.revocationLists;
    },
    certificates: () => held,
    onChange: (listener) => void listeners.push(listener),
    hold(certificates, trust = {}) {
      held = certificates;
      heldTrust = trust;
      for (const listener of listeners) listener();
    },
  };
}
