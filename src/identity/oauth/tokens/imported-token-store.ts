import { subtle, timingSafeEqual } from 'node:crypto';
import type { HubDatabase } from '../../../platform/store/database.ts';

/** Tokens that were taken over from a JupyterHub, by the salted hashes that it kept. */
export interface ImportedTokenStore {
  /** Tells whether a token is one of these; from then on it is known by the given hash, as all others are. */
  adopt(token: string, tokenHash: string): Promise<boolean>;
  /** Whether a token, adopted a moment ago, is that of a service that was added at run time. */
  isOfService(tokenHash: string, serviceName: string): Promise<boolean>;
}

/** Characters of a token by which JupyterHub finds its hash (`Hashed.prefix_length` of its `orm.py`). */
const prefixLength = 4;
/** Each takes up to some milliseconds to compare: no more tokens of one beginning are taken over. */
export const maxImportedOfPrefix = 32;

export function createImportedTokenStore({
  kysely,
  transaction,
  announceChange,
}: Pick<HubDatabase, 'kysely' | 'transaction' | 'announceChange'>): ImportedTokenStore {
  // What is taken over comes while no hub runs: a table that is empty stays so.
  let isEmpty = false;

  async function candidates(prefix: string) {
    if (isEmpty) return [];
    const found = await kysely
      .selectFrom('imported_tokens')
      .select(['access_token_id', 'hash'])
      .where('prefix', '=', prefix)
      .limit(maxImportedOfPrefix)
      .execute();
    if (found.length > 0) return found;
    const any = await kysely.selectFrom('imported_tokens').select('hash').limit(1).execute();
    isEmpty = any.length === 0;
    return found;
  }

  return {
    async adopt(token, tokenHash) {
      for (const { access_token_id: id, hash } of await candidates(token.slice(0, prefixLength))) {
        if (!(await isHashOf(hash, token))) continue;
        const isOfService = await transaction(async (on) => {
          const former = on.selectFrom('access_tokens').select('token_hash').where('id', '=', id);
          const { numUpdatedRows } = await on
            .updateTable('runtime_services')
            .set({ token_hash: tokenHash })
            .where('token_hash', '=', former)
            .executeTakeFirst();
          await on
            .updateTable('access_tokens')
            .set({ token_hash: tokenHash })
            .where('id', '=', id)
            .execute();
          await on.deleteFrom('imported_tokens').where('access_token_id', '=', id).execute();
          return numUpdatedRows > 0n;
        });
        if (isOfService) announceChange({ kind: 'runtime_services_changed' });
        return true;
      }
      return false;
    },

    async isOfService(tokenHash, serviceName) {
      const row = await kysely
        .selectFrom('runtime_services')
        .select('name')
        .where('name', '=', serviceName)
        .where('token_hash', '=', tokenHash)
        .executeTakeFirst();
      return row !== undefined;
    },
  };
}

/** `sha512:<rounds>:<salt>:<hex>`, as JupyterHub has it, with no more rounds than it takes for a chosen token. */
const storedHash = /^sha512:(\d{1,5}):([^:]{1,64}):([0-9a-f]{128})$/;

/** Of a chosen token with 256 characters: who knows how one begins must not have the hub hash without end. */
const maxHashedCharacters = 256 * 16_384;

/** Whether a hash is one that a token can be compared with. */
export function isImportableHash(hash: string): boolean {
  return storedHash.test(hash);
}

/**
 * Whether JupyterHub made a hash of a token: SHA-512 of the salt and then, so many times, the token (`hash_token` of its
 * `utils.py`). A chosen one is repeated 16,384 times, and hashed in a thread.
 */
async function isHashOf(hash: string, token: string): Promise<boolean> {
  const [, rounds = '', salt = '', hex = ''] = storedHash.exec(hash) ?? [];
  if (hex === '' || Number(rounds) * token.length > maxHashedCharacters) return false;
  const hashed = salt + token.repeat(Number(rounds));
  const digest = await subtle.digest('SHA-512', Buffer.from(hashed));
  return timingSafeEqual(Buffer.from(digest), Buffer.from(hex, 'hex'));
}
