import type { Kysely } from 'kysely';
import type { HubDatabase } from '../../../platform/store/database.ts';
import type { Tables } from '../../../platform/store/tables.ts';

/** A login that has ended, of which a client is to be told. */
export interface EndedLogin {
  readonly sessionId: string;
  readonly clientId: string;
  readonly userId: string;
  /** How often it was tried. */
  readonly attempts: number;
  readonly dueAt: number;
}

/** Which clients know a login; those of an ended one stay until they are told, by whichever instance. */
export interface ClientLoginStore {
  /** Clients of which one login or more is due. */
  dueClients(): Promise<string[]>;
  due(clientId: string, limit: number): Promise<EndedLogin[]>;
  /** Takes one for an attempt, after which it is due again; false when another instance has taken it. */
  claim(login: EndedLogin, nextDueAt: number): Promise<boolean>;
  /** Forgets one that was taken, unless the user has logged in at the client again. */
  settle(login: EndedLogin): Promise<void>;
  /** Forgets all that a client would be told. */
  forgetDue(clientId: string): Promise<void>;
}

export function createClientLoginStore({
  kysely,
  now,
}: Pick<HubDatabase, 'kysely' | 'now'>): ClientLoginStore {
  const dueOf = (clientId: string) =>
    kysely
      .selectFrom('client_logins')
      .selectAll()
      .where('client_id', '=', clientId)
      .where('due_at', '<=', now());

  return {
    async dueClients() {
      const rows = await kysely
        .selectFrom('client_logins')
        .select('client_id')
        .distinct()
        .where('due_at', '<=', now())
        .execute();
      return rows.map((row) => row.client_id);
    },

    async due(clientId, limit) {
      const rows = await dueOf(clientId).orderBy('due_at').limit(limit).execute();
      return rows.map((row) => ({
        sessionId: row.session_id,
        clientId,
        userId: row.user_id,
        attempts: row.attempts,
        dueAt: row.due_at ?? 0,
      }));
    },

    async claim({ sessionId, clientId, attempts, dueAt }, nextDueAt) {
      const { numUpdatedRows } = await kysely
        .updateTable('client_logins')
        .set({ due_at: nextDueAt, attempts: attempts + 1 })
        .where('session_id', '=', sessionId)
        .where('client_id', '=', clientId)
        .where('due_at', '=', dueAt)
        .where('attempts', '=', attempts)
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    },

    async settle({ sessionId, clientId }) {
      await kysely
        .deleteFrom('client_logins')
        .where('session_id', '=', sessionId)
        .where('client_id', '=', clientId)
        .where('due_at', 'is not', null)
        .execute();
    },

    async forgetDue(clientId) {
      await kysely
        .deleteFrom('client_logins')
        .where('client_id', '=', clientId)
        .where('due_at', '<=', now())
        .execute();
    },
  };
}

/** Notes that a client knows a login. */
export async function rememberLogin(
  transaction: Kysely<Tables>,
  { session_id, client_id, user_id }: Record<'session_id' | 'client_id' | 'user_id', string>,
): Promise<void> {
  await transaction
    .insertInto('client_logins')
    .values({ session_id, client_id, user_id })
    .onConflict((on) =>
      on.columns(['session_id', 'client_id']).doUpdateSet({ due_at: null, attempts: 0 }),
    )
    .execute();
}
