import { once } from 'node:events';
import { createServer } from 'node:http';
import { platform } from 'node:os';
import { geteuid, pid, ppid } from 'node:process';
import { expect, test } from 'vitest';
import { freePort } from '../../../test/support/free-port.ts';
import { offers } from '../../../test/support/requires.ts';
import {
  findDescriptor,
  findListeners,
  isStillHeld,
  leadsTo,
  listenersFor,
} from './port-listener.ts';

test.runIf(offers('Linux', platform() === 'linux'))(
  'the process that listens on a port is known, and that there is none',
  async () => {
    const port = await freePort();
    const server = createServer().listen(port, '127.0.0.1');
    await once(server, 'listening');
    const [listener = expect.fail(), ...others] = (await findListeners(port)) ?? [];
    expect([listener, ...others]).toEqual([
      { address: '0100007F', port, userId: geteuid?.(), socketId: expect.stringMatching(/^\d+$/) },
    ]);
    const held = findDescriptor([ppid, pid], listener) ?? expect.fail();
    expect(isStillHeld(held)).toBe(true);
    expect(findDescriptor([ppid, 4_194_305], listener)).toBeUndefined();
    await once(server.close(), 'close');
    expect(isStillHeld(held)).toBe(false);
    expect(await findListeners(port)).toEqual([]);
  },
);

test.runIf(offers('Linux', platform() === 'linux'))(
  'a URL leads to who listens closest to its address, and none but those',
  async () => {
    const port = await freePort();
    const any = createServer().listen(port);
    await once(any, 'listening');
    const [wide] = (await findListeners(port)) ?? [];
    const to = (host: string) => listenersFor(`http://${host}:${port}/path`);
    for (const host of ['127.0.0.1', '127.8.8.8', 'localhost']) {
      expect(await to(host)).toContainEqual(wide);
    }
    expect(await to('192.0.2.1')).toEqual([]);
    expect(await listenersFor('http+unix://%2Frun%2Fx.sock')).toEqual([]);
    await once(any.close(), 'close');

    const near = createServer().listen(port, '127.0.0.1');
    const other = createServer().listen(port, '127.0.0.2');
    await Promise.all([once(near, 'listening'), once(other, 'listening')]);
    expect(await to('127.0.0.1')).toMatchObject([{ address: '0100007F' }]);
    expect(await to('127.0.0.2')).toMatchObject([{ address: '0200007F' }]);
    expect(await to('127.0.0.3')).toEqual([]);
    await Promise.all([once(near.close(), 'close'), once(other.close(), 'close')]);
  },
);

test.each([
  ['http://127.0.0.1:8000', 'http://localhost.:8000', true],
  ['http://127.0.0.1:8000', 'http://[::ffff:127.0.0.1]:8000/', true],
  ['http://127.0.0.1:8000', 'http://ada.localhost:8000', true],
  ['http://127.0.0.1:8000', 'http://127.0.0.2:8000', false],
  ['http://127.0.0.1:8000', 'http://127.0.0.1:8001', false],
  ['http://0.0.0.0:80', 'http://127.0.0.2', true],
  ['http://[::]:80', 'http://127.0.0.2/', true],
  ['https://hub.example', 'https://hub.example:443/x', true],
  ['http://0.0.0.0:80', 'http://192.0.2.1', false],
  ['http+unix://%2Frun%2Fhub.sock', 'http://127.0.0.1:80', false],
])('of what listens on %s, %s leads there: %s', (listenUrl, url, expected) => {
  expect(leadsTo(url, listenUrl)).toBe(expected);
});
