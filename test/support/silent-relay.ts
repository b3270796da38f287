import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP relay that can fall silent, as a machine or a network that hangs does. */
export interface SilentRelay extends AsyncDisposable {
  readonly port: number;
  /** Connections stay open and new ones are taken, but no byte passes any more. */
  fallSilent(): void;
  /** Resets all connections, and new ones too. */
  cut(): void;
  /** Lets everything pass again; what is open is lost. */
  heal(): void;
  /** Holds each piece back for so long, in both directions. */
  delay(ms: number): void;
  /**
   * As what a firewall forgets: no byte passes on the connections of now any more, but new ones work. With a text, only
   * on those that sent it at their beginning.
   */
  silenceOpen(sent?: string): void;
  /** From now on, what clients send on new connections says something else of the same length. */
  translate(from: string, to: string): void;
  /** Pieces that clients have sent. */
  readonly sentCount: number;
  /** The same at the moment when a client sends this. */
  fallSilentAt(text: string): void;
  readonly isSilent: boolean;
  /** How often a client has sent something since then. */
  readonly unreceivedCount: number;
}

/** How much of what a client sends is looked at. */
const retainedBytes = 4_096;

/** Starts a relay on a free loopback port. */
export async function startSilentRelay(target: {
  readonly host: string;
  readonly port: number;
}): Promise<SilentRelay> {
  const sockets = new Set<Socket>();
  let isSilent = false;
  let unreceivedCount = 0;
  let sentCount = 0;
  let trigger: string | undefined;
  let translation: readonly [string, string] | undefined;
  const silenced = new WeakSet<Socket>();
  const beginnings = new Map<Socket, string>();
  let isCut = false;
  let delayMs = 0;

  /** In order: timers of one length end in the order in which they began. */
  function later(pass: () => void): void {
    if (delayMs === 0) pass();
    else setTimeout(pass, delayMs);
  }

  function resetAll(): void {
    for (const socket of sockets) socket.resetAndDestroy();
  }

  function keep(socket: Socket): void {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  }

  const server = createServer({ allowHalfOpen: true }, (client) => {
    keep(client);
    if (isCut) {
      client.resetAndDestroy();
      return;
    }
    const translated = translation;
    const isMute = () => isSilent || silenced.has(client);
    client.on('data', (data) => {
      sentCount += 1;
      if (isSilent) unreceivedCount += 1;
      const beginning = beginnings.get(client) ?? '';
      if (beginning.length < retainedBytes)
        beginnings.set(client, beginning + data.toString('latin1'));
    });
    client.on('close', () => beginnings.delete(client));
    if (isSilent) return;
    const upstream = connect({ ...target, allowHalfOpen: true });
    keep(upstream);
    client.on('data', (data) => {
      if (trigger !== undefined && data.includes(trigger)) isSilent = true;
      if (isMute()) return;
      later(() => upstream.write(translated === undefined ? data : replaced(data, translated)));
    });
    upstream.on('data', (data) => {
      if (!isMute()) later(() => client.write(data));
    });
    client.on('end', () => isMute() || later(() => upstream.end()));
    upstream.on('end', () => isMute() || later(() => client.end()));
    client.on('close', () => upstream.destroy());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    get isSilent() {
      return isSilent;
    },
    get unreceivedCount() {
      return unreceivedCount;
    },
    fallSilent() {
      isSilent = true;
    },
    cut() {
      isCut = true;
      resetAll();
    },
    heal() {
      [isCut, isSilent] = [false, false];
      resetAll();
    },
    delay(ms) {
      delayMs = ms;
    },
    silenceOpen(sent) {
      for (const socket of sockets)
        if (sent === undefined || beginnings.get(socket)?.includes(sent)) silenced.add(socket);
    },
    translate(from, to) {
      translation = [from, to];
    },
    get sentCount() {
      return sentCount;
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

function replaced(data: Buffer, [from, to]: readonly [string, string]): Buffer {
  return Buffer.from(data.toString('latin1').replaceAll(from, to), 'latin1');
}
