import { pino } from 'pino';
import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { sealer, tablesOf54, useOldJupyterHubs } from '../../../test/support/old-jupyterhub.ts';
import { createImportedTokenStore } from '../../identity/oauth/tokens/imported-token-store.ts';
import { createRuntimeServiceStore } from '../services/runtime-service-store.ts';
import { importPlan } from './import-store.ts';

describeEachDatabase('services of a JupyterHub', (open, dialect) => {
  const { take } = useOldJupyterHubs(open, dialect);

  test('that were added at run time are here, with the secrets of their clients', async () => {
    const { plan, database } = await take(tablesOf54);
    const store = createRuntimeServiceStore(database, { sealer, log: pino({ level: 'silent' }) });
    const [robot, ...others] = await store.list();
    expect(others).toEqual([]);
    expect(robot?.definition).toMatchObject({
      name: 'robot',
      url: 'http://127.0.0.1:1',
      display: false,
      info: { title: 'Robot' },
      oauth_no_confirm: true,
      oauth_redirect_uri: 'https://robot.example.org/back',
      oauth_client_allowed_scopes: ['read:users!user=robert'],
    });
    const { adopt, isOfService } = createImportedTokenStore(database);
    expect(await adopt('robot-token', 'new')).toBe(true);
    expect((await store.list())[0]?.tokenHash).toBe('new');
    expect(await isOfService('new', 'robot')).toBe(true);
    expect(await isOfService('new', 'wiki')).toBe(false);

    const again = async (next = plan) =>
      await importPlan(database, next, { dryRun: false, update: true, sealer });
    expect((await again()).counts.services).toMatchObject({ found: 1, added: 0, changed: 0 });
    const moved = (url: string) => {
      const [service] = plan.services;
      return { ...plan, services: [{ ...service!, definition: { ...service!.definition, url } }] };
    };
    expect((await again(moved('http://127.0.0.1:2'))).counts.services).toMatchObject({
      changed: 1,
    });
    const [current] = await store.list();
    expect(current).toMatchObject({ tokenHash: 'new', definition: { url: 'http://127.0.0.1:2' } });

    // Another token takes the place of the one that came along.
    const changed = { ...current!.definition, url: 'http://127.0.0.1:3' };
    await store.change(() => ({ put: { definition: changed, tokenHash: 'other' } }));
    const left = await database.kysely
      .selectFrom('access_tokens')
      .select('note')
      .where('service_name', '=', 'robot')
      .execute();
    expect(left).toEqual([]);
    expect((await again(moved('http://127.0.0.1:2'))).counts.services).toMatchObject({
      changed: 0,
    });
    expect((await store.list())[0]).toMatchObject({ tokenHash: 'other', definition: changed });

    const hubWithRobot = await open();
    await createRuntimeServiceStore(hubWithRobot, {
      sealer,
      log: pino({ level: 'silent' }),
    }).change(() => ({ put: { definition: { ...changed, name: 'robot' }, tokenHash: 'own' } }));
    const result = await importPlan(hubWithRobot, plan, { dryRun: false, update: true, sealer });
    expect(result.left.map(({ what }) => what)).toContain(
      'service robot, with its tokens and roles',
    );
    expect(result.given).not.toContain('service robot: role helper');
    expect(result.counts.tokens).toMatchObject({ found: 2, added: 1 });
  });
});
