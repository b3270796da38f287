import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';

/** An answer as it came over the wire. */
export interface RawAnswer {
  /** 0 when the connection was closed without an answer. */
  readonly status: number;
  readonly text: string;
}

/** Sends bytes as they are to the host of a URL and reads until the other side closes. */
export async function sendRaw(url: string, bytes: string | Buffer): Promise<RawAnswer> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname.endsWith('.localhost') ? '127.0.0.1' : hostname);
  await once(socket, 'connect');
  // The hub may answer and close while the rest is still being sent.
  socket.on('error', () => undefined);
  socket.write(bytes);
  const answer = await text(socket).catch(() => '');
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0), text: answer };
}

/** Sends bytes as they are and leaves, before an answer can come. */
export async function sendAndLeave(url: string, bytes: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.end(bytes, () => socket.destroy());
  await once(socket, 'close');
}

/** A GET with these header lines, on a connection of its own. */
export function getRaw(url: string, target: string, lines: readonly string[] = []) {
  const { host } = new URL(url);
  const hasHost = lines.some((line) => /^host:/i.test(line));
  const head = [`GET ${target} HTTP/1.1`, ...(hasHost ? [] : [`Host: ${host}`]), ...lines];
  return sendRaw(url, `${[...head, 'Connection: close'].join('\r\n')}\r\n\r\n`);
}

/** Whether a program of this machine listens on a port. */
export async function takesConnections(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
