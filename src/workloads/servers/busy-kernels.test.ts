import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createRouteTable } from '../../traffic/proxy/route-table.ts';
import { createBusyKernels } from './busy-kernels.ts';
import type { Server } from './server.ts';
import { createServerRoutes } from './server-routes.ts';

const busy = [{ execution_state: 'idle' }, { name: 'ir', execution_state: 'busy' }];
const answers = new Map<string | undefined, string>([
  ['/user/waits/api/kernels', JSON.stringify(busy)],
  [
    '/user/notes/api/kernels',
    JSON.stringify([
      { path: 'thesis/\u202efit\n.ipynb', kernel: { execution_state: 'busy', name: 'python3' } },
      { path: 'rest.ipynb', kernel: { execution_state: 'idle' } },
      { path: `${'x'.repeat(200)}.ipynb`, kernel: { execution_state: 'busy' } },
    ]),
  ],
  ['/user/rests/api/kernels', JSON.stringify([{ execution_state: 'idle' }, {}])],
  ['/user/other/api/kernels', '<title>Log in</title>'],
  ['/user/huge/api/kernels', JSON.stringify([...busy, 'x'.repeat(1_000_000)])],
  ['/api/kernels', JSON.stringify(busy)],
]);

test('a server with a busy kernel is in use, and one that answers otherwise, or not at all, is not', async () => {
  const asked: (string | undefined)[] = [];
  const app = createServer(({ url }, response) => {
    asked.push(url);
    const body = answers.get(url);
    if (body !== undefined) response.end(body);
  }).listen(0, '127.0.0.1');
  await once(app, 'listening');
  const target = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
  const serverRoutes = createServerRoutes({
    routes: createRouteTable({ reservedPrefixes: ['/hub/'], sessionIdAliases: [] }),
    basePath: '/',
    origins: { urlOf: (path) => path },
    isMeasured: () => true,
    accessOf: ({ id }) => ({
      access: 'gateway',
      readyPath: '/',
      kernelsPath: id === 'plain' ? undefined : '/api/kernels',
      stripsPrefix: id === 'stripped',
      forwarding: undefined,
      limits: undefined,
    }),
  });
  const ids = ['waits', 'notes', 'rests', 'other', 'huge', 'stripped', 'plain', 'silent'];
  const serverOf = (id: string) =>
    ({ id, userId: id, userName: id, name: '', state: 'running' }) as Server;
  for (const id of [...ids, 'used']) serverRoutes.open(serverOf(id), target);
  serverRoutes.open(serverOf('gone'), 'http://127.0.0.1:1');
  serverRoutes.routeToRemote([[serverOf('remote'), { url: target, via: undefined }]]);
  const found: string[] = [];
  const kernels = createBusyKernels({
    serverRoutes,
    onBusy: (id) => found.push(id),
    timeoutMs: 1_000,
  });
  await kernels.lookAt([...ids, 'gone', 'remote']);
  const questions = [...asked];
  const namesOf = (id: string) => kernels.namesOf(serverOf(id));
  expect(await Promise.all(['waits', 'stripped', 'rests'].map(namesOf))).toEqual([
    ['ir'],
    ['ir'],
    [],
  ]);
  expect(await namesOf('notes')).toEqual(['thesis/fit.ipynb', `…${'x'.repeat(94)}.ipynb`]);
  for (const id of ['other', 'huge', 'plain', 'gone']) expect(await namesOf(id)).toBeUndefined();
  app.closeAllConnections();
  app.close();
  expect(found.toSorted()).toEqual(['notes', 'stripped', 'waits']);
  expect(questions.toSorted()).toEqual([...answers.keys(), '/user/silent/api/kernels'].toSorted());
});
