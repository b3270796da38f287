import { afterEach, describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { until } from '../support/test-hub.ts';

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of opened.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

describe.skipIf(!hasPostgres())('hub reload with several instances', () => {
  const cluster = usePostgres();
  const cookie_secret = 'c0ffee42d15ea5e5a1ad0ddba11f00d5c0ffee42d15ea5e5a1ad0ddba11f00d5';

  async function startHub(database_url: string, instance_name: string) {
    const configOf = (announcement: string) => ({
      Hub: { database_url, cookie_secret, instance_name, announcement },
    });
    const folder = await createHubFolder(configOf('before'));
    opened.push(folder);
    const hub = await folder.start();
    const page = async () => (await fetch(`${folder.url}hub/login`)).text();
    return {
      folder,
      hub,
      page,
      announce: (announcement: string) => folder.configure(configOf(announcement)),
    };
  }

  test('reaches all of them, and says which have other settings', async () => {
    const database_url = await cluster().createDatabase();
    const here = await startHub(database_url, 'here');
    const there = await startHub(database_url, 'there');
    expect(await there.page()).toContain('before');

    await here.announce('after');
    await there.announce('after');
    const same = await here.folder.command(['reload']);
    expect(same).toMatchObject({ code: 0, stderr: '' });
    expect(same.stdout).toMatch(
      /^The hub \(process \d+\) has reloaded\.\nIn force now: Hub\.announcement\nAll 2 instances have the same settings now\.\n$/,
    );
    expect(await here.page()).toContain('after');
    expect(await there.page()).toContain('after');
    expect(there.hub.logged(/^reload requested$/)).toMatchObject([{ by: 'here' }]);
    expect(here.hub.logged(/^reload requested$/)).toEqual([]);

    await here.announce('only here');
    const different = await here.folder.command(['reload']);
    expect(different.stdout).toMatch(
      /Of 2 instances, these have other settings: there \(on .+\)\./,
    );
    for (const [{ hub }, instances] of [
      [here, ['there']],
      [there, ['here']],
    ] as const) {
      await until(
        () => hub.logged(/^other instances have other settings/).length > 0,
        'the log says so',
      );
      expect(hub.logged(/^other instances have other settings/)).toMatchObject([{ instances }]);
    }

    await there.announce('only here');
    await there.folder.command(['reload']);
    await until(
      () => here.hub.logged(/^instance settings consistent again$/).length > 0,
      'the log of the other says that it is over',
    );
  });

  test('changes nothing elsewhere when the configuration is wrong', async () => {
    const database_url = await cluster().createDatabase();
    const here = await startHub(database_url, 'here');
    const there = await startHub(database_url, 'there');
    await there.announce('after');
    here.hub.signal('SIGHUP');
    await until(() => there.hub.logged(/^reload requested$/).length > 0, 'the other is asked');
    await until(async () => (await there.page()).includes('after'), 'the other has reloaded');
    await here.folder.configure({
      Hub: { database_url, cookie_secret, instance_name: 'here', announcement: 5 },
    });
    here.hub.signal('SIGHUP');
    await until(() => here.hub.logged(/was not reloaded/).length > 0, 'it is refused');
    expect(there.hub.logged(/^reload requested$/)).toHaveLength(1);
  });
});
