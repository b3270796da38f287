import { Agent } from 'node:http';
import type { Phrase } from '../platform/texts/text.ts';
import { ExchangeFailure } from '../traffic/proxy/http1/upstream-message.ts';
import { VerifyingAgent } from '../traffic/proxy/verifying-agent.ts';

/** Connections of which only those are used that lead to the app itself. */
export interface OwnConnections {
  /** Says of a connection that stands whether it leads to the app; rejects with ExchangeFailure where it does not. */
  readonly verify: (() => Promise<void>) | undefined;
  /** Makes those that become WebSockets. */
  readonly agent: Agent;
}

/** `findForeignProcess` names another program that has the address of the app. */
export function createOwnConnections(
  isSocket: boolean,
  findForeignProcess: () => Promise<Phrase | undefined>,
): OwnConnections {
  // No one else can listen on the socket: its folder is closed.
  if (isSocket) return { verify: undefined, agent: new Agent() };
  async function verify(): Promise<void> {
    const foreignProcess = await findForeignProcess();
    if (foreignProcess !== undefined)
      throw new ExchangeFailure('UPSTREAM_GONE', String(foreignProcess));
  }
  return { verify, agent: new VerifyingAgent(verify) };
}
