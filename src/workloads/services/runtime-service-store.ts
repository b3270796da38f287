import { type Kysely, sql } from 'kysely';
import type { Logger } from 'pino';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { deleteTokensOf, forgetClient } from '../../platform/store/token-makers.ts';
import { type RuntimeService, serviceDefinition } from './runtime-service.ts';
import { clientIdOf } from './service.ts';

/** What a change is to be. */
export interface ServiceChange {
  /** To add, or to put in place of the one of that name. */
  readonly put?: RuntimeService;
  /** Names of those to delete. */
  readonly remove?: readonly string[];
}

/** The services that were added at run time. */
export interface RuntimeServiceStore {
  list(): Promise<readonly RuntimeService[]>;
  /**
   * Makes the change that is decided on what there is, while no one else changes it; what is thrown there changes
   * nothing. With a service go its roles and the tokens of it and its client, also those that an earlier one of
   * that name left: they are not for another one.
   */
  change<Change extends ServiceChange>(
    decide: (services: readonly RuntimeService[]) => Change,
  ): Promise<Change>;
}

export function createRuntimeServiceStore(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'transaction' | 'announceChange' | 'audit'>,
  { sealer, log }: { readonly sealer: Sealer; readonly log: Logger },
): RuntimeServiceStore {
  const { audit } = database;
  const targetOf = (name: string) => ({ kind: 'service', name }) as const;
  const contextOf = (name: string) => `service ${name}`;

  function toService(row: Row<'runtime_services'>): RuntimeService[] {
    const { name } = row;
    const definition = serviceDefinition.safeParse(JSON.parse(row.definition));
    if (!definition.success) {
      log.error({ service: name }, 'service of another hub version skipped');
      return [];
    }
    const environment = readEnvironment(row);
    return [
      {
        definition: { name, ...definition.data, ...(environment !== undefined && { environment }) },
        tokenHash: row.token_hash ?? undefined,
      },
    ];
  }

  function readEnvironment({
    name,
    environment_encrypted: encrypted,
  }: Row<'runtime_services'>): Record<string, string> | undefined {
    if (encrypted === null) return undefined;
    const opened = sealer.open(encrypted, contextOf(name));
    if (opened !== undefined) return JSON.parse(opened) as Record<string, string>;
    log.error(
      { service: name },
      'service environment encrypted with a lost cookie_secret, set it again',
    );
    return {};
  }

  async function read(from: Kysely<Tables>): Promise<RuntimeService[]> {
    const rows = await from.selectFrom('runtime_services').selectAll().orderBy('name').execute();
    return rows.flatMap(toService);
  }

  async function forgetOwner(transaction: Kysely<Tables>, name: string): Promise<void> {
    await deleteTokensOf(transaction, database, 'service_name', name);
    await transaction.deleteFrom('service_stops').where('name', '=', name).execute();
    await transaction
      .deleteFrom('role_assignments')
      .where('subject_kind', '=', 'service')
      .where('subject_name', '=', name)
      .execute();
  }

  async function put(
    transaction: Kysely<Tables>,
    { definition: { name, environment, ...definition }, tokenHash }: RuntimeService,
    former: RuntimeService | undefined,
  ): Promise<void> {
    const clientId = clientIdOf({ name, ...definition });
    const formerClientId = former && clientIdOf(former.definition);
    if (former === undefined) await forgetOwner(transaction, name);
    if (clientId !== formerClientId) {
      await forgetClient(transaction, database, clientId);
      if (formerClientId !== undefined) await forgetClient(transaction, database, formerClientId);
    }
    const values = {
      client_id: clientId,
      token_hash: tokenHash ?? null,
      definition: JSON.stringify(definition),
      environment_encrypted:
        environment === undefined
          ? null
          : sealer.seal(JSON.stringify(environment), contextOf(name)),
    };
    await transaction
      .insertInto('runtime_services')
      .values({ name, ...values })
      .onConflict((conflict) => conflict.column('name').doUpdateSet(values))
      .execute();
    const { url, access, admin, command } = definition;
    await audit.record(transaction, {
      action: former === undefined ? 'service.create' : 'service.change',
      target: targetOf(name),
      detail: {
        url,
        access,
        admin,
        managed: command !== undefined,
        ...(former !== undefined && { has_new_token: former.tokenHash !== tokenHash }),
      },
    });
  }

  return {
    list: () => read(database.kysely),

    async change(decide) {
      const change = await database.transaction(async (transaction) => {
        // Transactions of SQLite come one after another anyway.
        if (database.dialect === 'postgres') {
          await sql`lock table runtime_services in share row exclusive mode`.execute(transaction);
        }
        const services = await read(transaction);
        const decided = decide(services);
        const named = (name: string) => services.find(({ definition }) => definition.name === name);
        for (const name of decided.remove ?? []) {
          const former = named(name);
          await transaction.deleteFrom('runtime_services').where('name', '=', name).execute();
          if (former === undefined) continue;
          await audit.record(transaction, { action: 'service.delete', target: targetOf(name) });
          await forgetOwner(transaction, name);
          await forgetClient(transaction, database, clientIdOf(former.definition));
        }
        if (decided.put !== undefined) {
          await put(transaction, decided.put, named(decided.put.definition.name));
        }
        return decided;
      });
      if (change.put !== undefined || (change.remove ?? []).length > 0)
        database.announceChange({ kind: 'runtime_services_changed' });
      return change;
    },
  };
}
