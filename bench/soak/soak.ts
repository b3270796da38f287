import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import WebSocket from 'ws';
import { freePort } from '../../test/support/free-port.ts';
import type { Holding } from './holding.ts';

export interface SoakReport {
  readonly before: Holding;
  readonly during: Holding;
  readonly after: Holding;
  readonly openedWebSockets: number;
  readonly echoes: number;
  readonly restarts: number;
  /** How many requests ended in which way: a status, `aborted` by the client, `cut` by the hub. */
  readonly outcomes: Readonly<Record<string, number>>;
}

const program = (name: string) => join(import.meta.dirname, name);
const kinds = ['ok', 'ok', 'ok', 'ok', 'large', 'upload', 'stall', 'reset', 'drip', 'events'];
const settleMs = 30_000;

/**
 * Puts a hub under mixed load while its application dies, stalls, resets and comes back and clients
 * break off, and looks at what it holds before, in the middle, and after everybody has left.
 */
export async function soak(options: {
  readonly webSockets: number;
  readonly requestsPerRound: number;
  readonly rounds: number;
  readonly say?: (text: string) => void;
}): Promise<SoakReport> {
  const { webSockets, requestsPerRound, rounds, say = () => {} } = options;
  const directory = await mkdtemp(join(tmpdir(), 'hub-soak-'));
  const [appPort, publicPort, internalPort] = [
    await freePort(),
    await freePort(),
    await freePort(),
  ];
  const url = `http://127.0.0.1:${publicPort}/`;
  await writeFile(
    join(directory, 'hub.config.json'),
    JSON.stringify({
      Hub: {
        bind_url: url,
        hub_bind_url: `http://127.0.0.1:${internalPort}`,
        authenticator_class: 'dummy',
        database_url: 'sqlite::memory:',
        services: [
          { name: 'root', admin: true, api_token: 'soak-service-token' },
          { name: 'app', url: `http://127.0.0.1:${appPort}`, access: 'gateway' },
        ],
      },
      DummyAuthenticator: { password: 'soak' },
      Authenticator: { allow_all: true },
      Proxy: {
        max_websockets_per_user: 0,
        upstream_timeout: 2,
        extra_routes: { '/open/': `http://127.0.0.1:${appPort}` },
      },
    }),
  );
  const hub = fork(program('soaked-hub.ts'), [join(directory, 'hub.config.json')], {
    execArgv: ['--expose-gc'],
    cwd: directory,
  });
  let app = await startApp(appPort);
  try {
    await once(hub, 'message');
    const load = createLoad({ url, app: () => app });
    await load.untilServed();

    // Once around first, so that everything made at first use is there before it is counted.
    await load.openWebSockets(Math.min(webSockets, 50));
    await load.sendRequests(requestsPerRound);
    await load.leave();
    const before = await settled(hub);
    say(`before: ${JSON.stringify(before)}`);

    let during = before;
    let restarts = 0;
    for (let round = 0; round < rounds; round += 1) {
      await load.openWebSockets(webSockets);
      const requests = load.sendRequests(requestsPerRound);
      if (round === Math.floor(rounds / 2)) during = await measure(hub);
      await load.untilHalfSent();
      if (round % 2 === 0) app.kill('SIGKILL');
      else {
        app.kill('SIGSTOP');
        await pause(200);
        app.kill('SIGCONT');
        app.kill('SIGTERM');
      }
      await once(app, 'exit');
      app = await startApp(appPort);
      restarts += 1;
      await requests;
      await load.untilServed();
      say(`round ${round + 1} of ${rounds}: ${JSON.stringify(load.outcomes)}`);
    }
    await load.leave();
    const after = await settled(hub, before);
    say(`after: ${JSON.stringify(after)}`);
    const { openedWebSockets, echoes, outcomes } = load;
    return { before, during, after, openedWebSockets, echoes, restarts, outcomes };
  } finally {
    hub.send('stop');
    await once(hub, 'exit');
    app.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  }
}

function createLoad({ url, app }: { readonly url: string; readonly app: () => ChildProcess }) {
  const agent = new Agent({ keepAlive: true, maxSockets: 256 });
  const sockets = new Set<WebSocket>();
  const outcomes: Record<string, number> = {};
  let openedWebSockets = 0;
  let echoes = 0;
  let sent = 0;
  let half = 0;
  const authorization = 'token soak-service-token';

  function count(outcome: string): void {
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }

  async function openOne(index: number): Promise<void> {
    const path = index % 2 === 0 ? 'services/app/socket' : 'open/socket';
    const socket = new WebSocket(`${url.replace('http', 'ws')}${path}`, {
      headers: { authorization },
    });
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('message', () => {
      echoes += 1;
    });
    sockets.add(socket);
    await Promise.race([once(socket, 'open'), once(socket, 'close')]).catch(() => {});
    if (socket.readyState !== WebSocket.OPEN) return;
    openedWebSockets += 1;
    socket.send('hello');
  }

  /** One request; every seventh is broken off by its client, streams always are. */
  function sendOne(index: number): Promise<void> {
    const kind = kinds[index % kinds.length] ?? 'ok';
    const prefix = index % 3 === 0 ? 'services/app/' : 'open/';
    const isUpload = kind === 'upload';
    const isEndless = kind === 'drip' || kind === 'events';
    const { promise, resolve } = Promise.withResolvers<void>();
    const outgoing = request(`${url}${prefix}${kind}?n=${index}`, {
      method: isUpload ? 'POST' : 'GET',
      headers: { authorization },
      agent,
    });
    let isAborted = false;
    const abort = () => {
      isAborted = true;
      outgoing.destroy();
    };
    let outcome = 'cut';
    outgoing.on('response', (response) => {
      outcome = String(response.statusCode);
      response.on('error', () => {
        outcome = 'cut';
      });
      response.once('data', () => {
        if (isEndless || index % 7 === 0) setImmediate(abort);
      });
      response.resume();
    });
    outgoing.on('error', () => {});
    outgoing.once('close', () => {
      count(isAborted ? 'aborted' : outcome);
      resolve();
    });
    if (isUpload) {
      outgoing.write(Buffer.alloc(64 * 1024));
      if (index % 7 === 0) setImmediate(abort);
      else outgoing.end(Buffer.alloc(64 * 1024));
    } else {
      outgoing.end();
    }
    return promise;
  }

  return {
    outcomes,
    get openedWebSockets() {
      return openedWebSockets;
    },
    get echoes() {
      return echoes;
    },
    /** Opens WebSockets until so many are open, some at a time. */
    async openWebSockets(wanted: number): Promise<void> {
      for (let missing = wanted - sockets.size; missing > 0; missing -= 100) {
        const next = Array.from({ length: Math.min(missing, 100) }, (_, index) => openOne(index));
        await Promise.all(next);
      }
      for (const socket of sockets) {
        if (socket.readyState === WebSocket.OPEN) socket.send('again');
      }
    },
    async sendRequests(total: number): Promise<void> {
      half = sent + total / 2;
      const end = sent + total;
      async function worker(): Promise<void> {
        while (sent < end) {
          sent += 1;
          await sendOne(sent);
        }
      }
      await Promise.all(Array.from({ length: 64 }, worker));
    },
    async untilHalfSent(): Promise<void> {
      while (sent < half) await pause(5);
    },
    async untilServed(): Promise<void> {
      for (;;) {
        const answers = await Promise.all(
          ['services/app/', 'open/'].map((path) =>
            fetch(url + path, { headers: { authorization, connection: 'close' } }).then(
              async (answer) => {
                await answer.text();
                return answer.ok;
              },
              () => false,
            ),
          ),
        );
        if (answers.every(Boolean)) return;
        if (app().exitCode !== null) throw new Error('the application did not come back');
        await pause(50);
      }
    },
    /** Everybody leaves: half of the WebSockets without a word. */
    async leave(): Promise<void> {
      agent.destroy();
      const open = [...sockets];
      for (const [index, socket] of open.entries()) {
        if (index % 2 === 0) socket.terminate();
        else socket.close();
      }
      while (sockets.size > 0) await pause(20);
    },
  };
}

async function startApp(port: number): Promise<ChildProcess> {
  const app = fork(program('unruly-app.ts'), [String(port)]);
  await once(app, 'message');
  return app;
}

async function measure(hub: ChildProcess): Promise<Holding> {
  hub.send('measure');
  const [holding] = (await once(hub, 'message')) as [Holding];
  return holding;
}

/** Waits for closing handshakes, idle upstream connections and the like to come to their end. */
async function settled(hub: ChildProcess, wanted?: Holding): Promise<Holding> {
  const deadline = Date.now() + settleMs;
  let last = await measure(hub);
  for (;;) {
    await pause(500);
    const now = await measure(hub);
    const isCalm = now.openFiles === last.openFiles && now.sockets === last.sockets;
    const isBack = wanted === undefined || now.openFiles <= wanted.openFiles;
    if ((isCalm && isBack && Date.now() > deadline - settleMs + 6_000) || Date.now() > deadline) {
      return now;
    }
    last = now;
  }
}
