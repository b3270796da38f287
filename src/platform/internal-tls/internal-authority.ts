import type { Logger } from 'pino';
import { z } from 'zod';
import type { Secret } from '../config/secret.ts';
import { createSealer } from '../crypto/sealer.ts';
import type { KeyPair } from '../http/tls/certificate-source.ts';
import type { SettingStore } from '../store/setting-store.ts';
import { issueCertificate, makeAuthority } from './certificate-maker.ts';

/** A certificate to show with its key, and those of the authorities that are believed, in PEM and as Node takes them. */
export interface TlsIdentity {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** With what a process takes part in TLS within the hub now; undefined without `Hub.internal_ssl`. */
export type FindIdentity = () => TlsIdentity | undefined;

/** The authority of `Hub.internal_ssl`, the same for all processes with this database and a key of the hub. */
export interface InternalAuthority {
  /** Issues a certificate for a year; with `hosts`, for a server at any of them too. */
  issue(name: string, hosts?: readonly string[]): Promise<TlsIdentity>;
}

const dayMs = 86_400_000;
/** How long an authority issues; what it has issued by then is believed for as long again. */
const periodMs = 5 * 365 * dayMs;
/** For so long the next one is believed before it issues, so that everybody knows it by then. */
const announcedMs = 30 * dayMs;
/** Days of a certificate. */
const validDays = 365;
/** How far clocks may differ. */
const skewMs = dayMs;

const stored = z.object({ certificate: z.string(), key: z.string() });

/** Its key is sealed in the database. `now` is in milliseconds since 1970. */
export function createInternalAuthority({
  settings,
  secrets,
  now,
  log,
}: {
  readonly settings: Pick<SettingStore, 'find' | 'keep' | 'set'>;
  readonly secrets: readonly Secret[];
  readonly now: () => number;
  readonly log: Logger;
}): InternalAuthority {
  const sealer = createSealer(secrets, 'internal_ssl');
  const keyOf = (period: number) => `internal_ssl:${period}`;
  const read = (sealed: string, period: number) => {
    const json = sealer.open(sealed, keyOf(period));
    return json === undefined ? undefined : stored.parse(JSON.parse(json));
  };

  async function find(period: number): Promise<KeyPair | undefined> {
    const sealed = await settings.find(keyOf(period));
    return sealed === undefined ? undefined : read(sealed, period);
  }

  /** Of several processes that make one at once, all go on with the same. */
  async function findOrMake(period: number): Promise<KeyPair> {
    const found = await find(period);
    if (found !== undefined) return found;
    const made = await makeAuthority(`Hub internal authority ${period}`, {
      notBefore: new Date(period * periodMs - announcedMs - skewMs),
      notAfter: new Date((period + 2) * periodMs),
    });
    const sealed = sealer.seal(JSON.stringify(made), keyOf(period));
    const kept = read(await settings.keep(keyOf(period), sealed), period);
    if (kept !== undefined) return kept;
    log.warn('no cookie_secret opens the internal authority, which is replaced by another one');
    await settings.set(keyOf(period), sealed);
    return made;
  }

  return {
    async issue(name, hosts = []) {
      const nowMs = now();
      const period = Math.floor(nowMs / periodMs);
      const isNextKnown = nowMs > (period + 1) * periodMs - announcedMs;
      const authority = await findOrMake(period);
      const others = [
        await find(period - 1),
        isNextKnown ? await findOrMake(period + 1) : undefined,
      ];
      const issued = await issueCertificate(authority, {
        name,
        hosts,
        notBefore: new Date(nowMs - skewMs),
        notAfter: new Date(nowMs + validDays * dayMs),
      });
      const believed = [authority, ...others].flatMap((each) => each?.certificate ?? []);
      return { cert: issued.certificate, key: issued.key, ca: believed.join('\n') };
    },
  };
}
