import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP relay that can fall silent, as a machine or a network that hangs does. */
export interface SilentRelay extends AsyncDisposable {
  readonly port: number;
  /** Connections stay open and new ones are taken, but no byte passes any more. */
  fallSilent(): void;
  /** The same at the moment when a client sends this. */
  fallSilentAt(text: string): void;
  readonly isSilent: boolean;
  /** How often a client has sent something since then. */
  readonly unheardCount: number;
}

/** Starts a relay on a free loopback port. */
export async function startSilentRelay(target: {
  readonly host: string;
  readonly port: number;
}): Promise<SilentRelay> {
  const sockets = new Set<Socket>();
  let isSilent = false;
  let unheardCount = 0;
  let trigger: string | undefined;

  function keep(socket: Socket): void {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    keep(client);
    client.on('data', () => {
      if (isSilent) unheardCount += 1;
    });
    if (isSilent) return;
    const upstream = connect({ ...target, allowHalfOpen: true });
    keep(upstream);
    client.on('data', (data) => {
      if (trigger !== undefined && data.includes(trigger)) isSilent = true;
      if (!isSilent) upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (!isSilent) client.write(data);
    });
    client.on('end', () => isSilent || upstream.end());
    upstream.on('end', () => isSilent || client.end());
    client.on('close', () => upstream.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    get isSilent() {
      return isSilent;
    },
    get unheardCount() {
      return unheardCount;
    },
    fallSilent() {
      isSilent = true;
    },
    fallSilentAt(text) {
      trigger = text;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
