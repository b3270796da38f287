import { Agent, type AgentOptions, type ClientRequestArgs } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';

type OnCreated = (error: Error | null, socket: Duplex) => void;

/** Makes connections of which only those are used that lead where they should, as `verify` says once they stand. */
export class VerifyingAgent extends Agent {
  readonly #verify: () => Promise<void>;

  constructor(verify: () => Promise<void>, options?: AgentOptions) {
    super(options);
    this.#verify = verify;
  }

  override createConnection({ host, port }: ClientRequestArgs, onCreated?: OnCreated): undefined {
    const socket = connect({ host: String(host), port: Number(port) });
    const fail = (error: Error) => {
      socket.destroy();
      onCreated?.(error, socket);
    };
    socket.once('error', fail);
    socket.once('connect', () => {
      // Asked once it stands: who had the port before and after has the connection.
      this.#verify().then(() => {
        socket.off('error', fail);
        onCreated?.(null, socket);
      }, fail);
    });
  }
}
