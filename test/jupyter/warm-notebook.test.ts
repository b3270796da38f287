import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { guardedNotebook } from '../support/guarded-notebook.ts';
import { pathOf, requires } from '../support/requires.ts';
import {
  adminToken,
  callApi,
  createServerHub,
  createUsers,
  serverPath,
  startUntilReady,
  untilServer,
} from '../support/server-hub.ts';
import { until } from '../support/test-hub.ts';

test.skipIf(!requires('jupyter-notebook', 'python3', 'ipykernel'))(
  'notebooks that were started ahead are those of their users, each with kernels of its own',
  async () => {
    const notebook = guardedNotebook();
    await using hub = await createServerHub({
      Spawner: { ...notebook, start_timeout: 300, http_timeout: 300 },
      LocalProcessSpawner: {
        warm: [
          {
            program: notebook.cmd[0],
            python: pathOf('python3'),
            modules: ['notebook.notebookapp'],
            count: 2,
          },
        ],
      },
    });
    const waits = () => hub.logLines.filter(({ msg }) => msg === 'warm process waits').length;
    await until(() => waits() === 2, 'two processes wait');
    await createUsers(hub, 'alice', 'ben');
    for (const name of ['alice', 'ben']) {
      const path = serverPath(name);
      await startUntilReady(hub, path);
      const { state } = await untilServer(hub, path, ({ ready }) => ready, 'Jupyter is ready');
      const command = await readFile(`/proc/${state?.['pid']}/cmdline`, 'utf8');
      expect(command).toContain('notebook.notebookapp');
      const browser = await hub.logIn(name);
      const answer = await browser.open(`${hub.url}user/${name}/api/kernelspecs`);
      expect(JSON.parse(answer.body)).toMatchObject({ default: 'python3' });
    }
    const { status } = await callApi(hub, adminToken, 'DELETE', serverPath('alice'));
    expect([202, 204]).toContain(status);
    await until(() => waits() === 4, 'two more wait');
  },
  600_000,
);
