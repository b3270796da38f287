import { forgetClient } from '../../platform/store/token-makers.ts';
import { forgetServiceName } from '../services/runtime-service-store.ts';
import { addRows, type Importing } from './import-rows-store.ts';

/** Services that were added at run time. What others of their names left here is not for them. */
export async function writeServices(importing: Importing): Promise<void> {
  const { on, database, plan, update, counts } = importing;
  const there = await on
    .selectFrom('runtime_services')
    .select(['name', 'client_id', 'definition'])
    .execute();
  const rowOf = new Map(there.map((row) => [row.name, row]));
  for (const { name, clientId, definition } of plan.services) {
    const row = rowOf.get(name);
    const values = { client_id: clientId, definition: JSON.stringify(definition) };
    if (row?.client_id !== clientId) await forgetClient(on, database, clientId);
    if (row === undefined) {
      await forgetServiceName(on, database, name);
      const added = { name, ...values, token_hash: null, environment_encrypted: null };
      await addRows(importing, 'services', 'runtime_services', [added]);
    } else if (update && row.definition !== values.definition) {
      if (row.client_id !== clientId) await forgetClient(on, database, row.client_id);
      await on.updateTable('runtime_services').set(values).where('name', '=', name).execute();
      counts.services.changed += 1;
    }
  }
}

/** Has services know their tokens, and the secrets of their clients, by what stands for the old hash of them. */
export async function writeServiceSecrets({ on, plan }: Importing): Promise<void> {
  const names = new Set(plan.services.map(({ name }) => name));
  for (const { id, owner, isSecret } of plan.tokens) {
    if (!isSecret || !names.has(owner.name)) continue;
    await on
      .updateTable('runtime_services')
      .set(({ selectFrom }) => ({
        token_hash: selectFrom('access_tokens')
          .select('token_hash')
          .where('access_tokens.id', '=', id),
      }))
      .where('name', '=', owner.name)
      .where('token_hash', 'is', null)
      .execute();
  }
}
