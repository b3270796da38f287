import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, expect, test } from 'vitest';
import { freePort } from '../../../test/support/free-port.ts';
import {
  app,
  freeUrl,
  inState,
  serviceConfig,
  untilStatus,
  useServices,
} from '../../../test/support/service-worlds.ts';
import { until } from '../../../test/support/test-hub.ts';
import { identifyProcess, isSameProcess } from '../../platform/process-table/process-table.ts';
import type { ServiceStatus } from './service-status.ts';

const { started, world } = useServices();

describe('an external service', () => {
  test('gets its route while it answers', async () => {
    const port = await freePort();
    const server = createServer((_request, response) => response.end()).listen(port, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${port}`;
    const registry = await started([{ name: 'a', url, api_token: 'long-enough' }]);
    await untilStatus(registry, inState('ready'));
    expect(world.routes.get('a')).toBe('open');
    expect(world.tokens.get('a')).toBe('long-enough');
    server.closeAllConnections();
    await once(server.close(), 'close');
    await registry.restart('a');
    const status = await untilStatus(registry, inState('unhealthy'));
    expect(String(status.lastError)).toBe(`nothing listens on ${url}`);
    expect(world.routes.get('a')).toBe('closed');
  });

  test('without a url only holds its token', async () => {
    const registry = await started([{ name: 'a', api_token: 'long-enough' }]);
    expect(registry.statusOf('a')).toMatchObject({ kind: 'external', isReady: true });
    expect(world.routes.size).toBe(0);
  });

  test('without a url shows a restart, for which a request would otherwise wait in vain', async () => {
    const registry = await started([{ name: 'a', api_token: 'long-enough' }]);
    const { since = new Date() } = registry.statusOf('a') ?? {};
    await until(() => Date.now() > since.getTime(), 'the clock has gone on');
    await registry.restart('a');
    const restarted = registry.statusOf('a');
    expect(restarted).toMatchObject({ isReady: true });
    expect(Number(restarted?.since)).toBeGreaterThan(since.getTime());
  });
});

describe('a reload', () => {
  test('restarts what changed, adds, removes, and leaves the rest alone', async () => {
    const command = app('never-listens');
    const urls = [await freeUrl(), await freeUrl()];
    const registry = await started([
      { name: 'same', command },
      { name: 'changed', command },
      { name: 'shown', command },
      { name: 'gone', command, url: urls[0] },
    ]);
    const running = ({ pid }: ServiceStatus) => pid !== undefined;
    const [same, changed, shown, gone] = await Promise.all(
      ['same', 'changed', 'shown', 'gone'].map((name) => untilStatus(registry, running, name)),
    );
    const token = world.tokens.get('same');
    const goneIdentity = identifyProcess(gone?.pid ?? 0);
    const difference = await registry.applyConfig(
      [
        { name: 'same', command },
        { name: 'changed', command, environment: { A: 'b' } },
        { name: 'shown', command, display: false },
        { name: 'new', command, url: urls[1] },
      ].map(serviceConfig),
    );
    expect(difference).toEqual({
      added: ['new'],
      removed: ['gone'],
      restarted: ['changed'],
      updated: ['shown'],
    });
    await untilStatus(registry, running, 'new');
    const restarted = await untilStatus(registry, running, 'changed');
    expect(registry.statusOf('same')?.pid).toBe(same?.pid);
    expect(registry.statusOf('shown')?.pid).toBe(shown?.pid);
    expect(registry.find('shown')?.isDisplayed).toBe(false);
    expect(restarted.pid).not.toBe(changed?.pid);
    expect(goneIdentity && isSameProcess(goneIdentity)).toBe(false);
    expect(registry.statusOf('gone')).toBeUndefined();
    expect([...world.routes]).toEqual([['new', 'closed']]);
    expect([...world.tokens.keys()].sort()).toEqual(['changed', 'new', 'same', 'shown']);
    expect(world.tokens.get('same')).toBe(token);
  });

  test('two reloads at once end with the second', async () => {
    const registry = await started([{ name: 'a', command: app('never-listens') }]);
    const b = [serviceConfig({ name: 'b', command: app('never-listens') })];
    const c = [serviceConfig({ name: 'c', command: app('never-listens') })];
    await Promise.all([registry.applyConfig(b), registry.applyConfig(c)]);
    expect(registry.services().map(({ name }) => name)).toEqual(['c']);
  });
});

test('a hub with nothing but broken services starts at once', async () => {
  const registry = await started([
    { name: 'a', command: 'no-such-command' },
    { name: 'b', command: app('exit-at-once') },
    { name: 'c', url: await freeUrl(), command: app('never-listens'), timeout: 600 },
    { name: 'd', url: await freeUrl() },
  ]);
  expect(registry.statuses().map(({ isReady }) => isReady)).toEqual([false, false, false, false]);
});
