import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test, vi } from 'vitest';
import { startProxy } from '../../../test/attacks/proxy-harness.ts';
import { answerNames } from '../../../test/support/resolver.ts';
import { probeReadiness } from '../../spawning/processes/readiness-probe.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

const metadata = ['169.254.169.254', 'fe80::1', '::ffff:169.254.169.254', 'fd00:ec2::254'];

test.each(metadata)('a service whose name turns into %s is not asked', async (address) => {
  answerNames([address]);
  await using proxy = await startProxy();
  proxy.addService('a', 'http://rebound.test');
  expect((await fetch(`http://127.0.0.1:${proxy.port}/services/a/`)).status).toBe(503);
  expect(String(proxy.errors[0]?.cause)).toContain('metadata address');
  const probe = { url: 'http://rebound.test', path: '/', timeoutMs: 10_000 };
  const found = await probeReadiness(probe);
  expect(found.ready ? undefined : String(found.reason)).toContain('metadata address');
});

test('of several addresses the others are used', async () => {
  const server = createServer((_req, res) => res.end('ok')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  answerNames(['169.254.169.254', '127.0.0.1']);
  await using proxy = await startProxy();
  proxy.addService('a', `http://several.test:${port}`);
  expect((await fetch(`http://127.0.0.1:${proxy.port}/services/a/`)).status).toBe(200);
  const probe = { url: `http://several.test:${port}`, path: '/', timeoutMs: 10_000 };
  expect(await probeReadiness(probe)).toMatchObject({ ready: true, status: 200 });
  server.closeAllConnections();
  await once(server.close(), 'close');
});
