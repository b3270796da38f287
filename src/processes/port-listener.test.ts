import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { platform } from 'node:os';
import { geteuid } from 'node:process';
import { expect, test } from 'vitest';
import { findListenerUserIds } from './port-listener.ts';

test.runIf(platform() === 'linux')(
  'whose program listens on a port is known, and when nobody does',
  async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    expect(await findListenerUserIds(port)).toEqual([geteuid?.()]);
    await once(server.close(), 'close');
    expect(await findListenerUserIds(port)).toEqual([]);
  },
);
