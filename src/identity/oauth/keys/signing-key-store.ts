import type { Sealer } from '../../../platform/crypto/sealer.ts';
import type { HubDatabase } from '../../../platform/store/database.ts';

/** Names of signature algorithms (RFC 7518 §3.1). */
export const signingAlgorithms = ['RS256', 'ES256'] as const;
export type SigningAlgorithm = (typeof signingAlgorithms)[number];

/** A key that signs ID tokens. */
export interface SigningKey {
  /** `kid` of what it signs. */
  readonly id: string;
  readonly algorithm: SigningAlgorithm;
  /** PKCS #8, PEM; undefined where no cookie secret opens it. */
  readonly privateKey: string | undefined;
  readonly activeFrom: Date;
  /** When the last token that it signed has ended; undefined for the newest of its algorithm. */
  readonly endsAt: Date | undefined;
}

/** The keys of all instances, sealed with the cookie secret. */
export interface SigningKeyStore {
  /** Those that have not ended, by the time from which they sign. */
  list(): Promise<SigningKey[]>;
  /**
   * Keeps a key as the newest of its algorithm, after the one that `former` names; those before it end when what they
   * sign until then has. Of several processes that do so at once, one succeeds.
   */
  add(key: SigningKey, former: string | undefined): Promise<void>;
  /** Deletes one, or all of them, whether they have ended or not; tells how many. */
  revoke(id?: string): Promise<number>;
  /** Deletes those that have ended. */
  purgeEnded(): Promise<void>;
}

/** Seconds for which an ID token is valid. */
export const idTokenSeconds = 3600;

/** Binds a sealed key to its id. */
export function signingKeyContext(id: string): string {
  return `signing-key:${id}`;
}

export function createSigningKeyStore(
  database: HubDatabase,
  { sealer }: { readonly sealer: Sealer },
): SigningKeyStore {
  return {
    async list() {
      const rows = await database.kysely
        .selectFrom('signing_keys')
        .selectAll()
        .where((is) => is.or([is('ends_at', 'is', null), is('ends_at', '>', database.now())]))
        .orderBy('active_from')
        .execute();
      return rows.map((row) => ({
        id: row.id,
        algorithm: row.alg as SigningAlgorithm,
        privateKey: sealer.open(row.sealed, signingKeyContext(row.id)),
        activeFrom: new Date(row.active_from),
        endsAt: row.ends_at === null ? undefined : new Date(row.ends_at),
      }));
    },

    async add({ id, algorithm: alg, privateKey = '', activeFrom }, former) {
      const lastEnd = activeFrom.getTime() + idTokenSeconds * 1000;
      await database.transaction(async (transaction) => {
        const newest = await transaction
          .selectFrom('signing_keys')
          .select('id')
          .where('alg', '=', alg)
          .where('ends_at', 'is', null)
          .$if(database.dialect === 'postgres', (query) => query.forUpdate())
          .executeTakeFirst();
        if (newest?.id !== former) return;
        await transaction
          .updateTable('signing_keys')
          .set({ ends_at: lastEnd })
          .where('alg', '=', alg)
          // By its id: one that another process has just made as the first is none that came before.
          .where((is) =>
            is.or([
              ...(former === undefined ? [] : [is('id', '=', former)]),
              is('ends_at', '>', lastEnd),
            ]),
          )
          .execute();
        const { numInsertedOrUpdatedRows = 0n } = await transaction
          .insertInto('signing_keys')
          .values({
            id,
            alg,
            sealed: sealer.seal(privateKey, signingKeyContext(id)),
            active_from: activeFrom.getTime(),
            ends_at: null,
          })
          .onConflict((on) => on.column('alg').where('ends_at', 'is', null).doNothing())
          .executeTakeFirst();
        if (numInsertedOrUpdatedRows === 0n) return;
        await database.audit.record(transaction, {
          action: 'key.create',
          target: { kind: 'hub', name: alg },
          detail: { name: id, starts: activeFrom.toISOString() },
        });
      });
      database.announceChange({ kind: 'signing_keys_changed' });
    },

    async revoke(id) {
      const count = await database.transaction(async (transaction) => {
        const deleted = await transaction
          .deleteFrom('signing_keys')
          .$if(id !== undefined, (query) => query.where('id', '=', id ?? ''))
          .returning('id')
          .execute();
        if (deleted.length === 0) return 0;
        await database.audit.record(transaction, {
          action: 'key.revoke',
          detail: id === undefined ? { count: deleted.length } : { name: id },
        });
        return deleted.length;
      });
      database.announceChange({ kind: 'signing_keys_changed' });
      return count;
    },

    async purgeEnded() {
      await database.kysely
        .deleteFrom('signing_keys')
        .where('ends_at', '<=', database.now())
        .execute();
    },
  };
}
