import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type AttackedHub,
  answerTo,
  bytesOf,
  handshakeOf,
  startAttackedHub,
} from './hub-harness.ts';
import { statusOf } from './proxy-harness.ts';

let hub: AttackedHub;
beforeAll(async () => {
  hub = await startAttackedHub();
});
afterAll(() => hub[Symbol.asyncDispose]());

const noHosts = [
  '',
  ',',
  'hub.test,',
  ',hub.test',
  'hub.test,evil.test',
  'hub.test, evil.test',
  'hub.test evil.test',
  'hub.test;evil.test',
  'hub.test:80,evil.test',
  'hub.test:80:81',
  'hub.test:x',
  'hub.test:-1',
  'hub.test:65536',
  'hub.test:123456',
  ':80',
  'http://hub.test',
  '//hub.test',
  'hub.test/evil',
  'hub.test?evil',
  'hub.test#evil',
  'hub.test\\evil',
  'user@hub.test',
  'hub.test:x@evil.test',
  '.',
  '..',
  '.hub.test',
  'hub..test',
  'hub.test..',
  'hub%2etest',
  '[::1',
  '::1',
  '[]',
  '[hub.test]',
  '[1:2:3:4:5:6:7:8:9]',
  '[::1]evil.test',
  '[::1].evil.test',
  '<script>',
  '"hub.test"',
  "'hub.test'",
  '$host',
  '{host}',
  '*',
  'hub*.test',
  'h\xfcb.test',
];
const hosts = [
  'hub.test',
  'HUB.test:8000',
  'hub.test.',
  'a_b.hub.test',
  'hub--1.test:65535',
  'hub.test:',
  'localhost:1',
  '10.0.0.1:8000',
  '[::1]:8000',
  '[::ffff:10.0.0.1]',
  `${'a.'.repeat(100)}test`,
];

const targets = [
  '/open/x',
  '/services/own/x',
  '/hub/health',
  '/hub/login',
  '/hub/api/',
  '/nowhere',
];

describe('row 16: a Host header', () => {
  test.each(noHosts)('%j, which names no host, is refused', async (host) => {
    hub.seen.length = 0;
    for (const target of targets) {
      const answer = await answerTo(hub, bytesOf(`GET ${target}`, [`Host: ${host}`]));
      expect(statusOf(answer)).toBe(400);
    }
    const upgrade = await answerTo(hub, handshakeOf('/open/x', [`Host: ${host}`]));
    expect(statusOf(upgrade)).toBe(400);
    expect(hub.seen).toEqual([]);
  });

  test('that names none is refused at the internal address too', async () => {
    const port = Number(new URL(hub.hub.apiUrl).port);
    for (const host of noHosts) {
      for (const lines of [[`Host: ${host}`], ['Host: hub.test', `Host: ${host}`]]) {
        const answer = await answerTo({ port }, bytesOf('GET /hub/api/', lines));
        expect([host, statusOf(answer)]).toEqual([host, 400]);
      }
    }
    const answer = await answerTo({ port }, bytesOf('GET /hub/api/'));
    expect(statusOf(answer)).toBe(200);
  });

  test.each(hosts)('%s names a host', async (host) => {
    hub.seen.length = 0;
    const answer = await answerTo(hub, bytesOf('GET /open/x', [`Host: ${host}`]));
    expect(statusOf(answer)).toBe(200);
    expect(hub.seen).toMatchObject([{ headers: { host, 'x-forwarded-host': host } }]);
  });

  test('twice, in whatever case, is refused', async () => {
    for (const lines of [
      ['Host: hub.test', 'Host: hub.test'],
      ['Host: hub.test', 'HOST: evil.test'],
      ['Host: ', 'host: hub.test'],
    ]) {
      expect(statusOf(await answerTo(hub, bytesOf('GET /open/x', lines)))).toBe(400);
    }
  });

  test('may be missing in HTTP/1.0, where there was none', async () => {
    const answer = await answerTo(hub, 'GET /open/x HTTP/1.0\r\n\r\n');
    expect(statusOf(answer)).toBe(200);
  });
});

describe('X-Forwarded-Host', () => {
  const asking = async (
    lines: readonly string[],
    Hub: Readonly<Record<string, unknown>> = { trusted_proxies: ['127.0.0.1'] },
  ) => {
    await using attacked = await startAttackedHub({ Hub });
    const statuses: Record<string, number> = {};
    for (const line of lines) {
      const headers = ['Host: hub.test', ...line.split('|')];
      const answer = await answerTo(attacked, bytesOf('GET /open/x', headers));
      const reported = attacked.seen.at(-1)?.headers['x-forwarded-host'];
      statuses[`${line} → ${reported}`] = statusOf(answer);
      attacked.seen.length = 0;
    }
    return statuses;
  };

  test('that is not Host is refused from a proxy that is trusted', async () => {
    expect(
      await asking([
        'X-Forwarded-Host: hub.test',
        'X-Forwarded-Host: HUB.test.:443',
        'X-Forwarded-Host: staff.test',
        'X-Forwarded-Host: hub.test, hub.test',
        'X-Forwarded-Host: staff.test, hub.test',
        'X-Forwarded-Host: hub.test|X-Forwarded-Host: hub.test',
        'X-Forwarded-Host: ',
        'X-Forwarded-Host: http://hub.test',
      ]),
    ).toEqual({
      'X-Forwarded-Host: hub.test → hub.test': 200,
      'X-Forwarded-Host: HUB.test.:443 → hub.test': 200,
      'X-Forwarded-Host: staff.test → undefined': 400,
      'X-Forwarded-Host: hub.test, hub.test → undefined': 400,
      'X-Forwarded-Host: staff.test, hub.test → undefined': 400,
      'X-Forwarded-Host: hub.test|X-Forwarded-Host: hub.test → undefined': 400,
      'X-Forwarded-Host:  → undefined': 400,
      'X-Forwarded-Host: http://hub.test → undefined': 400,
    });
  });

  test('counts where a setting says so, if it names one host', async () => {
    expect(
      await asking(
        [
          'X-Forwarded-Host: staff.test:8443',
          'X-Forwarded-Host: staff.test, hub.test',
          'X-Forwarded-Host: a b',
          'X-Forwarded-Host: ',
        ],
        { trusted_proxies: ['127.0.0.1'], trust_forwarded_host: true },
      ),
    ).toEqual({
      'X-Forwarded-Host: staff.test:8443 → staff.test:8443': 200,
      'X-Forwarded-Host: staff.test, hub.test → undefined': 400,
      'X-Forwarded-Host: a b → undefined': 400,
      'X-Forwarded-Host:  → undefined': 400,
    });
  });

  test('of anyone else says nothing', async () => {
    const lines = ['X-Forwarded-Host: staff.test', 'X-Forwarded-Host: a, b'];
    expect(await asking(lines, {})).toEqual({
      'X-Forwarded-Host: staff.test → hub.test': 200,
      'X-Forwarded-Host: a, b → hub.test': 200,
    });
  });
});
