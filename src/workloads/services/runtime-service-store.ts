import { type Kysely, sql } from 'kysely';
import type { Logger } from 'pino';
import type { Sealer } from '../../platform/crypto/sealer.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Row, Tables } from '../../platform/store/tables.ts';
import { deleteTokensOf, forgetClient } from '../../platform/store/token-makers.ts';
import {
  type RuntimeService,
  type ServiceDefinition,
  serviceDefinition,
} from './runtime-service.ts';
import { clientIdOf } from './service.ts';

/** What of a definition may hold secrets. */
type SealedPart = 'environment' | 'headers';

/** Binds what is sealed to its service: moved to another one it does not open. */
export function serviceContext(name: string, part: SealedPart): string {
  return part === 'environment' ? `service ${name}` : `${part} of service ${name}`;
}

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
  /** Seals the headers of services that an earlier version has stored. */
  sealFormer(): Promise<void>;
  /**
   * Makes the change that is decided on what there is, while no one else changes it; what is thrown there changes
   * nothing. With a service go its roles and the tokens of it and its client, also those that an earlier one of
   * that name left: they are not for another one.
   */
  change<Change extends ServiceChange>(
    decide: (services: readonly RuntimeService[]) => Change,
  ): Promise<Change>;
}

/** Ends what a service of a name may do and has: the next one of that name is another one. */
export async function forgetServiceName(
  transaction: Kysely<Tables>,
  database: Pick<HubDatabase, 'dialect'>,
  name: string,
): Promise<void> {
  await deleteTokensOf(transaction, database, 'service_name', name);
  await transaction.deleteFrom('service_stops').where('name', '=', name).execute();
  await transaction
    .deleteFrom('role_assignments')
    .where('subject_kind', '=', 'service')
    .where('subject_name', '=', name)
    .execute();
}

export function createRuntimeServiceStore(
  database: Pick<HubDatabase, 'kysely' | 'dialect' | 'transaction' | 'announceChange' | 'audit'>,
  { sealer, log }: { readonly sealer: Sealer; readonly log: Logger },
): RuntimeServiceStore {
  const { audit } = database;
  const targetOf = (name: string) => ({ kind: 'service', name }) as const;

  function toService(row: Row<'runtime_services'>): RuntimeService[] {
    const { name } = row;
    const definition = serviceDefinition.safeParse(JSON.parse(row.definition));
    if (!definition.success) {
      log.error({ service: name }, 'service of another hub version skipped');
      return [];
    }
    const environment = open<Record<string, string>>(row, 'environment', {});
    const headers = open<ServiceDefinition['headers']>(row, 'headers', undefined);
    return [
      {
        definition: {
          name,
          ...definition.data,
          ...(environment !== undefined && { environment }),
          ...(headers !== undefined && { headers }),
        },
        tokenHash: row.token_hash ?? undefined,
      },
    ];
  }

  /** `lost` where the key is another one now. */
  function open<Value>(
    row: Row<'runtime_services'>,
    part: SealedPart,
    lost: Value,
  ): Value | undefined {
    const { name, [`${part}_encrypted` as const]: encrypted } = row;
    if (encrypted === null) return undefined;
    const opened = sealer.open(encrypted, serviceContext(name, part));
    if (opened !== undefined) return JSON.parse(opened) as Value;
    log.error(
      { service: name },
      `service ${part} encrypted with a lost cookie_secret, set it again`,
    );
    return lost;
  }

  const seal = (name: string, part: SealedPart, value: object | undefined): string | null =>
    value === undefined ? null : sealer.seal(JSON.stringify(value), serviceContext(name, part));

  async function read(from: Kysely<Tables>): Promise<RuntimeService[]> {
    const rows = await from.selectFrom('runtime_services').selectAll().orderBy('name').execute();
    return rows.flatMap(toService);
  }

  async function put(
    transaction: Kysely<Tables>,
    { definition: { name, environment, headers, ...definition }, tokenHash }: RuntimeService,
    former: RuntimeService | undefined,
  ): Promise<void> {
    const clientId = clientIdOf({ name, ...definition });
    const formerClientId = former && clientIdOf(former.definition);
    if (former === undefined) await forgetServiceName(transaction, database, name);
    // One that was taken over from a JupyterHub is a row among all tokens, too.
    else if (former.tokenHash !== undefined && former.tokenHash !== tokenHash)
      await deleteTokensOf(transaction, database, 'token_hash', former.tokenHash);
    if (clientId !== formerClientId) {
      await forgetClient(transaction, database, clientId);
      if (formerClientId !== undefined) await forgetClient(transaction, database, formerClientId);
    }
    const values = {
      client_id: clientId,
      token_hash: tokenHash ?? null,
      definition: JSON.stringify(definition),
      environment_encrypted: seal(name, 'environment', environment),
      headers_encrypted: seal(name, 'headers', headers),
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

    async sealFormer() {
      await database.transaction(async (transaction) => {
        const rows = await transaction
          .selectFrom('runtime_services')
          .select(['name', 'definition'])
          .where('headers_encrypted', 'is', null)
          .execute();
        for (const { name, definition: former } of rows) {
          const { headers, ...definition } = JSON.parse(former) as { readonly headers?: object };
          if (headers === undefined) continue;
          await transaction
            .updateTable('runtime_services')
            .set({
              definition: JSON.stringify(definition),
              headers_encrypted: seal(name, 'headers', headers),
            })
            .where('name', '=', name)
            .where('definition', '=', former)
            .execute();
        }
      });
    },

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
          await forgetServiceName(transaction, database, name);
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
