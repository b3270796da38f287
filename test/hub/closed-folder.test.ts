import { chmod, mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createHubFolder } from '../support/hub-process.ts';
import { requires } from '../support/requires.ts';
import { sharePrograms } from '../support/shared-programs.ts';

describe.runIf(requires('root'))('a hub with programs in a folder closed to other accounts', () => {
  test('says so at start and in hub check, with the way out, and runs', async () => {
    await using folder = await createHubFolder();
    // As a clone in root's home, whose mode is the same.
    const closed = join(folder.directory, 'root');
    await chmod(folder.directory, 0o755);
    await mkdir(closed, { mode: 0o700 });
    await symlink(process.execPath, join(closed, 'node'));
    const command = [join(closed, 'node'), '-e', 'setInterval(() => {}, 1000)'];
    await folder.configure({
      Hub: {
        services: [
          { name: 'app', command, user: 'nobody' },
          { name: 'own', command },
        ],
      },
      Spawner: { cmd: command, system_user: '{username}' },
    });
    const message = (who: string) =>
      `${who} cannot reach ${command[0]}: ${closed} is closed (mode 0700); move the program to a ` +
      `folder open to it, such as /opt, or: chmod o+x ${closed}`;
    const expected = [
      { setting: 'Hub.services[1].user', msg: message('the account "nobody"') },
      { setting: 'Spawner.system_user', msg: message('other accounts') },
    ];

    const { code, stderr } = await folder.run(['check']);
    expect(code).toBe(0);
    for (const { setting, msg } of expected) expect(stderr).toContain(`: ${setting}: ${msg}\n`);

    await using hub = await folder.start();
    expect(hub.logged(/ cannot reach /)).toMatchObject(expected);
  });

  test('says nothing of programs that the account can run', async () => {
    await using programs = await sharePrograms('never-listens.ts');
    const app = { name: 'app', command: programs.app('never-listens.ts'), user: 'nobody' };
    await using folder = await createHubFolder({
      Hub: { services: [app] },
      Spawner: { cmd: programs.app('never-listens.ts'), system_user: '{username}' },
    });
    expect(await folder.run(['check'])).toMatchObject({ code: 0, stderr: '' });
  });
});
