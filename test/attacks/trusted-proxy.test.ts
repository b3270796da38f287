import { expect, test } from 'vitest';
import { answerTo, bytesOf, startAttackedHub } from './hub-harness.ts';
import { statusOf } from './proxy-harness.ts';

test('row 7: behind a trusted proxy only what it must say is believed, and no prefix or address of its client', async () => {
  await using hub = await startAttackedHub({ Hub: { trusted_proxies: ['127.0.0.1'] } });
  const spoofed = [
    'X-Forwarded-For: 10.9.9.9, 203.0.113.7',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Host: HUB.test:443',
    'X-Forwarded-Prefix: /open',
    'X-Forwarded-Uri: /open/x',
    'X-Forwarded-Method: OPTIONS',
    'X-Original-URL: /open/x',
  ];
  const guarded = await answerTo(hub, bytesOf('GET /services/guarded/x', spoofed));
  expect(statusOf(guarded)).toBe(302);
  expect(hub.seen).toEqual([]);

  expect(statusOf(await answerTo(hub, bytesOf('GET /open/x', spoofed)))).toBe(200);
  expect(hub.seen[0]?.headers).toMatchObject({
    'x-forwarded-for': '203.0.113.7',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'hub.test',
  });
  expect(Object.keys(hub.seen[0]?.headers ?? {})).not.toContain('x-forwarded-prefix');
  expect(JSON.stringify(hub.seen)).not.toMatch(/10\.9\.9\.9|X-Original|x-forwarded-uri/i);
});
