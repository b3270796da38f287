import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useConfigLoading } from '../../../test/support/config-loading.ts';
import { runsAsRoot } from '../../spawning/processes/system-user.ts';
import { checkAccountRisks } from './account-check.ts';

const { load } = useConfigLoading();

async function warningsOf(content: unknown): Promise<string[]> {
  const { config } = await load(content);
  return (await checkAccountRisks(config)).map(({ path, message }) => `${path}: ${message}`);
}

const environment = { LD_LIBRARY_PATH: '/home/{username}/lib', LOCPATH: '/x', LANG: 'C' };

test('variables of the loader are named wherever they reach another account', async () => {
  const warnings = await warningsOf({
    Hub: {
      services: [
        { name: 'own', command: ['true'], environment },
        { name: 'other', command: ['true'], user: 'nobody', environment: { GCONV_PATH: '/x' } },
      ],
    },
    Spawner: {
      system_user: '{username}',
      environment,
      profiles: [{ name: 'gpu', environment: { LD_PRELOAD: '/x.so' } }],
    },
  });
  expect(warnings.map((each) => each.split(':')[0])).toEqual([
    'Spawner.environment.LD_LIBRARY_PATH',
    'Spawner.environment.LOCPATH',
    'Spawner.profiles[0].environment.LD_PRELOAD',
    'Hub.services[1].environment.GCONV_PATH',
  ]);
});

test.each([
  ['/home/{username}', []],
  ['/home/{username}/', []],
  ['/home/x-{username}/lab/work', [expect.stringMatching(/^Spawner\.home_dir: lab\/work lies/)]],
])('of homes in %s it says %j', async (home_dir, expected) => {
  expect(await warningsOf({ Spawner: { system_user: '{username}', home_dir } })).toEqual(expected);
  expect(await warningsOf({ Spawner: { home_dir, environment } })).toEqual([]);
});

test.runIf(runsAsRoot())('folders that others could move are named', async () => {
  const open = await mkdtemp(join(tmpdir(), 'hub-open-'));
  await chmod(open, 0o777);
  expect(
    await warningsOf({
      Hub: { log_dir: join(open, 'logs'), audit_file: join(open, 'audit.log') },
      Spawner: { system_user: '{username}' },
    }),
  ).toEqual([
    expect.stringMatching(`^Hub.log_dir: ${open} can be written to by other accounts`),
    expect.stringMatching(`^Hub.audit_file: ${open} can be written to by other accounts`),
  ]);
  await rm(open, { recursive: true });
});
