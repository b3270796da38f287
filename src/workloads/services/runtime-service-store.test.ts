import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { Secret } from '../../platform/config/secret.ts';
import { createSealer } from '../../platform/crypto/sealer.ts';
import { serviceDefinition } from './runtime-service.ts';
import { createRuntimeServiceStore } from './runtime-service-store.ts';

const headers = { request: { set: { Authorization: 'Basic hushhush' } } };
const definition = {
  name: 'wiki',
  ...serviceDefinition.parse({ url: 'http://127.0.0.1:9', headers }),
};

describeEachDatabase('services added at run time', (open) => {
  const storeOf = (database: Awaited<ReturnType<typeof open>>, secret = 'first key') =>
    createRuntimeServiceStore(database, {
      sealer: createSealer([new Secret(secret)], 'service-environment'),
      log: pino({ level: 'silent' }),
    });
  const stored = async ({ kysely }: Awaited<ReturnType<typeof open>>) => [
    ...(await kysely.selectFrom('runtime_services').selectAll().execute()),
    ...(await kysely.selectFrom('audit').selectAll().execute()),
  ];

  test('are stored without the values of headers in clear text', async () => {
    const database = await open();
    await storeOf(database).change(() => ({ put: { definition, tokenHash: undefined } }));
    expect(JSON.stringify(await stored(database))).not.toContain('hushhush');
    expect((await storeOf(database).list())[0]?.definition.headers).toEqual(headers);
    expect((await storeOf(database, 'another key').list())[0]?.definition.headers).toBeUndefined();
  });

  test('of an earlier version are read, and sealed when a hub starts', async () => {
    const database = await open();
    const store = storeOf(database);
    await store.change(() => ({ put: { definition, tokenHash: undefined } }));
    const { name, ...former } = definition;
    await database.kysely
      .updateTable('runtime_services')
      .set({ definition: JSON.stringify(former), headers_encrypted: null })
      .execute();
    expect((await store.list())[0]?.definition.headers).toEqual(headers);
    await store.sealFormer();
    expect(JSON.stringify(await stored(database))).not.toContain('hushhush');
    expect((await store.list())[0]?.definition).toEqual({ name, ...former });
  });
});
