import { createPrivateKey, generateKeyPairSync, hash, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import type { Sealer } from '../crypto/sealer.ts';
import type { SettingStore } from '../store/setting-store.ts';

const certificateSchema = z.object({
  /** In PEM, with the chain. */
  certificate: z.string(),
  key: z.string(),
  /** Directory of the authority. */
  directory: z.string(),
  /** Those that were ordered. */
  names: z.array(z.string()),
  /** When it was ordered, in milliseconds since 1970, as all below. */
  madeAt: z.number(),
  notAfter: z.number(),
  /** When it is to be renewed. */
  renewAt: z.number(),
  /** As RFC 9773 §4.1 names it. */
  id: z.string().optional(),
  /** What the authority has suggested (RFC 9773 §4.2), and when it is to be asked again. */
  window: z.object({ start: z.number(), end: z.number() }).optional(),
  askAt: z.number().optional(),
});
export type StoredCertificate = Readonly<z.output<typeof certificateSchema>>;

const failureSchema = z.object({
  /** Of the settings with which it failed: others are tried at once. */
  settings: z.string(),
  /** Attempts in a row. */
  count: z.number(),
  at: z.number(),
  nextAt: z.number(),
  reason: z.string(),
});
export type AcmeFailure = Readonly<z.output<typeof failureSchema>>;

/** What all instances know of their certificate. The certificate, its key and that of the account are sealed. */
export interface AcmeStore {
  /** Undefined also where no cookie secret opens it. */
  certificate(): Promise<StoredCertificate | undefined>;
  setCertificate(certificate: StoredCertificate): Promise<void>;
  /** The key of an account, which is made where there is none or no cookie secret opens it. */
  accountKey(account: string): Promise<KeyObject>;
  /** Makes another key, where the authority refuses the account of the one before. */
  replaceAccountKey(account: string): Promise<KeyObject>;
  /** Of the last attempt, if it failed. */
  failure(): Promise<AcmeFailure | undefined>;
  setFailure(failure: AcmeFailure | undefined): Promise<void>;
}

const certificateKey = 'acme:certificate';
const failureKey = 'acme:failure';

export function createAcmeStore(
  settings: Pick<SettingStore, 'find' | 'set'>,
  sealer: Sealer,
): AcmeStore {
  const keyOf = (account: string) => `acme:account:${hash('sha256', account, 'base64url')}`;

  async function findSealed(key: string): Promise<string | undefined> {
    const sealed = await settings.find(key);
    return sealed === undefined ? undefined : sealer.open(sealed, key);
  }
  const setSealed = (key: string, value: string) => settings.set(key, sealer.seal(value, key));

  async function replaceAccountKey(account: string): Promise<KeyObject> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    await setSealed(keyOf(account), pem);
    return privateKey;
  }

  return {
    certificate: async () => readJson(certificateSchema, await findSealed(certificateKey)),
    setCertificate: (certificate) => setSealed(certificateKey, JSON.stringify(certificate)),
    async accountKey(account) {
      const pem = await findSealed(keyOf(account));
      return pem === undefined ? await replaceAccountKey(account) : createPrivateKey(pem);
    },
    replaceAccountKey,
    failure: async () => await findFailure(settings),
    setFailure: (failure) => settings.set(failureKey, JSON.stringify(failure ?? null)),
  };
}

/** Why the last attempt failed; undefined where it did not. Needs no key. */
export async function findFailure({
  find,
}: Pick<SettingStore, 'find'>): Promise<AcmeFailure | undefined> {
  return readFailure(await find(failureKey));
}

/** The same of the text as it is stored. */
export function readFailure(stored: string | undefined): AcmeFailure | undefined {
  return readJson(failureSchema, stored);
}

function readJson<Value>(schema: z.ZodType<Value>, text: string | undefined): Value | undefined {
  return text === undefined ? undefined : schema.safeParse(JSON.parse(text)).data;
}
