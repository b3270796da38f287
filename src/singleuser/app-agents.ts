import { Agent, type ClientRequestArgs } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';

type OnCreated = (error: Error | null, socket: Duplex) => void;

/** Makes connections of which only those are used that lead to the app itself. */
class OwnAgent extends Agent {
  readonly #findStranger: () => Promise<string | undefined>;

  constructor(
    options: { readonly keepAlive: boolean },
    findStranger: () => Promise<string | undefined>,
  ) {
    super(options);
    this.#findStranger = findStranger;
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
      this.#findStranger().then((stranger) => {
        socket.off('error', fail);
        if (stranger === undefined) onCreated?.(null, socket);
        else fail(new Error(stranger));
      }, fail);
    });
  }
}

/**
 * What makes connections to the app. A request is sent only where `findStranger`, which names another
 * program that has the address of the app, finds none.
 */
export function createAppAgents(
  isSocket: boolean,
  findStranger: () => Promise<string | undefined>,
): { readonly forRequests: Agent; readonly forUpgrades: Agent } {
  const create = (keepAlive: boolean) =>
    // No one else can listen on the socket: its folder is closed.
    isSocket ? new Agent({ keepAlive }) : new OwnAgent({ keepAlive }, findStranger);
  return { forRequests: create(true), forUpgrades: create(false) };
}
