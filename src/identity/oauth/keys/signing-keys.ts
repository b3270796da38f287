import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from 'node:crypto';
import { promisify } from 'node:util';
import type { JWTPayload } from 'jose';
import type { Logger } from 'pino';
import { randomSecret } from '../../../platform/crypto/random.ts';
import type { HubDatabase } from '../../../platform/store/database.ts';
import {
  type SigningAlgorithm,
  type SigningKey,
  type SigningKeyStore,
  signingAlgorithms,
} from './signing-key-store.ts';

/** What a key does now; a lost one cannot be opened by any cookie secret. */
export const keyStates = ['next', 'active', 'former', 'lost'] as const;

export interface ListedKey extends SigningKey {
  readonly state: (typeof keyStates)[number];
}

/** Keys that sign ID tokens (OpenID Connect Core 1.0 §10.1): the same in all instances. */
export interface SigningKeys {
  /**
   * The public keys (RFC 7517 §5) of every token that may still be valid, and those that come next. Made at first
   * need.
   */
  keySet(): Promise<{ readonly keys: readonly object[] }>;
  /** A JWT (RFC 7519), signed off the main thread; its `typ` is `JWT` unless given. */
  sign(claims: JWTPayload, algorithm: SigningAlgorithm, type?: string): Promise<string>;
  /** The claims of an ID token that one of these keys signed for the issuer, also of an expired one. */
  verify(token: string, issuer: string): Promise<JWTPayload | undefined>;
  /** Those that have not ended, by the time from which they sign. */
  list(): Promise<readonly ListedKey[]>;
  /** Makes those that take over in a day, unless they are there. */
  rotate(): Promise<void>;
  /** Ends one or all of them at once, as after a leak, and makes new ones; tells how many have ended. */
  revoke(id?: string): Promise<number>;
  /** Makes keys that are missing or due, and deletes those that have ended: for one process at a time. */
  maintain(): Promise<void>;
  /** Says in the log which keys were lost with a cookie secret, and what to do. */
  reportLost(): Promise<void>;
}

/** So long a key is published before it signs: clients remember the set of keys. */
const noticeMs = 86_400_000;

let jose: typeof import('jose') | undefined;
/** Once: to import again what is loaded takes a tenth of the time of a signature. */
const loadJose = async () => (jose ??= await import('jose'));
const generate = promisify(generateKeyPair);

interface OpenedKey extends SigningKey {
  readonly key: KeyObject;
  readonly jwk: object;
}

export function createSigningKeys(deps: {
  readonly store: SigningKeyStore;
  readonly database: Pick<HubDatabase, 'onChange' | 'now'>;
  /** `Hub.signing_key_days`. */
  readonly days: number;
  readonly log: Logger;
}): SigningKeys {
  const { store, database, log } = deps;
  const lifetimeMs = deps.days * 86_400_000;
  let known: Promise<readonly OpenedKey[]> | undefined;
  let making: Promise<void> | undefined;
  database.onChange(() => {
    known = undefined;
  }, ['signing_keys_changed', 'all']);

  async function open(stored: readonly SigningKey[]): Promise<readonly OpenedKey[]> {
    const { exportJWK } = await loadJose();
    const opened = stored.map(async (signingKey): Promise<OpenedKey[]> => {
      const { id, algorithm: alg, privateKey } = signingKey;
      if (privateKey === undefined) return [];
      const key = createPrivateKey(privateKey);
      const jwk = { ...(await exportJWK(createPublicKey(key))), kid: id, use: 'sig', alg };
      return [{ ...signingKey, key, jwk }];
    });
    return (await Promise.all(opened)).flat();
  }

  async function make(
    keys: readonly SigningKey[],
    algorithm: SigningAlgorithm,
    activeFromMs: number,
  ): Promise<void> {
    const { privateKey } =
      algorithm === 'RS256'
        ? await generate('rsa', { modulusLength: 2048 })
        : await generate('ec', { namedCurve: 'P-256' });
    const newest = keys.find((key) => key.algorithm === algorithm && key.endsAt === undefined);
    await store.add(
      {
        id: randomSecret(12),
        algorithm,
        privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
        activeFrom: new Date(activeFromMs),
        endsAt: undefined,
      },
      newest?.id,
    );
  }

  /** A lone one is active whatever the clock says: that of the instance that made it may be ahead. */
  function activeOf<Key extends SigningKey>(
    keys: readonly Key[],
    algorithm: SigningAlgorithm,
  ): Key | undefined {
    const ofAlgorithm = keys.filter((key) => key.algorithm === algorithm);
    return (
      ofAlgorithm.findLast(({ activeFrom }) => activeFrom.getTime() <= database.now()) ??
      ofAlgorithm[0]
    );
  }

  function stateOf(key: SigningKey, usable: readonly SigningKey[]): ListedKey['state'] {
    if (key.privateKey === undefined) return 'lost';
    if (activeOf(usable, key.algorithm) === key) return 'active';
    return key.activeFrom.getTime() > database.now() ? 'next' : 'former';
  }

  async function makeMissing(): Promise<void> {
    const stored = await store.list();
    const opened = await open(stored);
    for (const algorithm of signingAlgorithms) {
      const hasNewest = opened.some((key) => key.algorithm === algorithm && !key.endsAt);
      if (!hasNewest) await make(stored, algorithm, database.now());
    }
  }

  /** Those that have not ended, among them one of each algorithm that signs now. */
  async function current(): Promise<readonly OpenedKey[]> {
    for (;;) {
      known ??= store.list().then(open);
      const keys = await known.catch((error: unknown) => {
        known = undefined;
        throw error;
      });
      const now = database.now();
      const lasting = keys.filter(({ endsAt }) => endsAt === undefined || endsAt.getTime() > now);
      if (signingAlgorithms.every((algorithm) => activeOf(lasting, algorithm))) return lasting;
      making ??= makeMissing().finally(() => {
        making = undefined;
        known = undefined;
      });
      await making;
    }
  }

  /** After those that will have signed for so long when the next take over. */
  async function makeNext(ageMs: number): Promise<void> {
    const keys = await current();
    const now = database.now();
    for (const { algorithm, activeFrom, endsAt } of keys) {
      const dueMs = activeFrom.getTime() + ageMs;
      const isDue = activeFrom.getTime() <= now && dueMs - noticeMs <= now;
      if (endsAt === undefined && isDue)
        await make(keys, algorithm, Math.max(now + noticeMs, dueMs));
    }
  }

  return {
    keySet: async () => ({ keys: (await current()).map(({ jwk }) => jwk) }),

    async sign(claims, algorithm, typ = 'JWT') {
      const signing = activeOf(await current(), algorithm);
      if (signing === undefined) throw new TypeError(`no key for ${algorithm}`);
      const { SignJWT } = await loadJose();
      return new SignJWT(claims)
        .setProtectedHeader({ alg: algorithm, kid: signing.id, typ })
        .sign(signing.key);
    },

    async verify(token, issuer) {
      const { jwtVerify, errors } = await loadJose();
      const keys = await current();
      try {
        const { payload } = await jwtVerify(
          token,
          ({ kid, alg }) => {
            const found = keys.find(({ id, algorithm }) => id === kid && algorithm === alg);
            if (found === undefined) throw new errors.JWKSNoMatchingKey();
            return createPublicKey(found.key);
          },
          {
            issuer,
            typ: 'JWT',
            algorithms: [...signingAlgorithms],
            clockTolerance: Number.MAX_SAFE_INTEGER,
          },
        );
        return payload;
      } catch (error) {
        if (error instanceof errors.JOSEError) return undefined;
        throw error;
      }
    },

    async list() {
      const keys = await store.list();
      const usable = keys.filter(({ privateKey }) => privateKey !== undefined);
      return keys.map((key) => ({ ...key, state: stateOf(key, usable) }));
    },

    rotate: () => makeNext(0),

    async revoke(id) {
      const count = await store.revoke(id);
      if (count > 0) await makeMissing();
      known = undefined;
      return count;
    },

    async maintain() {
      await makeNext(lifetimeMs);
      await store.purgeEnded();
    },

    async reportLost() {
      const lost = (await store.list()).filter(({ privateKey }) => privateKey === undefined);
      if (lost.length === 0) return;
      log.warn(
        { keys: lost.map(({ id }) => id) },
        'keys that sign ID tokens were sealed with another cookie secret: new ones are made, and apps that keep the old ones refuse logins until they fetch those. To go on with the old ones, put the former key behind the new one in Hub.cookie_secret and restart the hub',
      );
    },
  };
}
