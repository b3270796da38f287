import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { platform } from 'node:os';
import { geteuid, pid, ppid } from 'node:process';
import { expect, test } from 'vitest';
import { findListeners, holdsSocket } from './port-listener.ts';

test.runIf(platform() === 'linux')(
  'who listens on a port is known, and when nobody does',
  async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const listeners = (await findListeners(port)) ?? [];
    expect(listeners).toEqual([{ userId: geteuid?.(), socketId: expect.stringMatching(/^\d+$/) }]);
    expect(holdsSocket([pid], listeners)).toBe(true);
    expect(holdsSocket([ppid, 4_194_305], listeners)).toBe(false);
    await once(server.close(), 'close');
    expect(await findListeners(port)).toEqual([]);
  },
);
