// People with open pages, in a process of their own: their WebSockets, and their requests.
import { once } from 'node:events';
import { Agent, get } from 'node:http';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';

interface Person {
  /** Where it connects from, of 127.0.0.0/8. */
  readonly address: string;
  /** What its requests ask for. */
  readonly page: string;
  readonly pageCookies: string;
  /** What its WebSockets are opened to. */
  readonly socket: string;
  readonly socketCookies: string;
}

/** Who they are, and what their pages do. */
export interface Plan {
  readonly people: readonly Person[];
  /** Of each. */
  readonly sockets: number;
  /** Of each. */
  readonly requestsPerSecond: number;
  readonly seconds: number;
}

/** What came of it. */
export interface Outcome {
  /** In no order; those of requests that failed are left out. */
  readonly latenciesMs: readonly number[];
  readonly failedRequests: number;
  readonly closedSockets: number;
}

const openedAtOnce = 40;

process.once('message', (plan: Plan) => void live(plan));

/** Says `open` when all WebSockets are, sends requests when it is told to, and then says what came of it. */
async function live(plan: Plan): Promise<void> {
  const { people, sockets } = plan;
  let closedSockets = 0;
  const waiting = people
    .flatMap((person) => Array.from({ length: sockets }, () => person))
    .values();
  const open = async () => {
    for (const { socket: url, socketCookies: cookie, address: localAddress } of waiting) {
      const socket = new WebSocket(url, {
        headers: { cookie },
        origin: new URL(url.replace('ws', 'http')).origin,
        perMessageDeflate: false,
        localAddress,
      });
      await once(socket, 'open');
      socket.on('close', () => {
        closedSockets += 1;
      });
    }
  };
  await Promise.all(Array.from({ length: openedAtOnce }, open));
  process.send?.('open');
  await once(process, 'message');
  const answers = await ask(plan);
  const latenciesMs = answers.filter((ms) => ms !== undefined);
  const failedRequests = answers.length - latenciesMs.length;
  process.send?.({ latenciesMs, failedRequests, closedSockets } satisfies Outcome);
}

/** At a fixed rate, whether or not earlier answers are there; each person has a connection of its own. */
async function ask({ people, requestsPerSecond, seconds }: Plan): Promise<(number | undefined)[]> {
  const askers = people.map(({ page, pageCookies: cookie, address: localAddress }) => {
    const options = {
      agent: new Agent({ keepAlive: true, maxSockets: 1 }),
      headers: { cookie },
      localAddress,
    };
    return () => answered(page, options);
  });
  const answers: Promise<number | undefined>[] = [];
  const rate = people.length * requestsPerSecond;
  const startedAt = performance.now();
  while (answers.length < rate * seconds) {
    const due = Math.min(rate * seconds, ((performance.now() - startedAt) / 1_000) * rate);
    while (answers.length < due) {
      const next = askers[answers.length % askers.length];
      if (next !== undefined) answers.push(next());
    }
    await pause(2);
  }
  return Promise.all(answers);
}

/** How many milliseconds that took; undefined where it failed. */
async function answered(
  url: string,
  options: Parameters<typeof get>[1],
): Promise<number | undefined> {
  const startedAt = performance.now();
  try {
    const [response] = await once(get(url, options), 'response');
    response.resume();
    await once(response, 'end');
    if (response.statusCode === 200) return performance.now() - startedAt;
    throw new Error(`it was answered with ${response.statusCode}`);
  } catch (error) {
    process.stderr.write(`${url}: ${error}\n`);
    return undefined;
  }
}
