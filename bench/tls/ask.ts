import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { type Agent, type RequestOptions, request } from 'node:https';
import type { TLSSocket } from 'node:tls';

/** An answer, and the connection by which it came. */
export interface TlsAnswer {
  readonly status: number;
  readonly socket: TLSSocket;
}

/**
 * Asks a hub at a port of this machine whether it is well, on a connection of its own unless an agent is given. Throws for
 * a certificate of another authority or name; one that has ended is taken, where that is told.
 */
export async function askOverTls(options: {
  readonly port: number;
  readonly host: string;
  /** Certificate of the authority, in PEM. */
  readonly ca: string;
  readonly agent?: Agent;
  /** Of an earlier connection, which is resumed. */
  readonly session?: Buffer | undefined;
  readonly takesEnded?: boolean;
}): Promise<TlsAnswer> {
  const { port, host, ca, agent, session, takesEnded = false } = options;
  const sent = request({
    host: '127.0.0.1',
    port,
    path: '/hub/health',
    servername: host,
    headers: { host },
    ca,
    agent: agent ?? false,
    ...(session && { session }),
    rejectUnauthorized: !takesEnded,
  } as RequestOptions).end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  const socket = answer.socket as TLSSocket;
  const { authorizationError: error } = socket as unknown as { authorizationError?: string | null };
  if (error && error !== 'CERT_HAS_EXPIRED') throw new Error(`the certificate: ${error}`);
  answer.resume();
  await once(answer, 'end');
  return { status: answer.statusCode ?? 0, socket };
}
