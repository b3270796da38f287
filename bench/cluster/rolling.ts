import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { Agent, fetch } from 'undici';
import WebSocket from 'ws';
import { until } from '../../test/support/test-hub.ts';
import { adminToken, type Fleet } from './fleet.ts';

export interface RollingReport {
  readonly requests: number;
  readonly failed: Readonly<Record<string, number>>;
  readonly webSockets: number;
  readonly dropped: number;
}

const userNames = Array.from({ length: 10 }, (_, index) => `rolling-${index}`);
const webSocketCount = 50;

async function untilServed(hubUrl: string, name: string): Promise<void> {
  const headers = { authorization: `token ${adminToken}` };
  await until(async () => {
    const answer = await fetch(`${hubUrl}user/${name}/`, { headers, redirect: 'manual' });
    await answer.arrayBuffer();
    return answer.status === 200;
  }, `the server of ${name} is served`);
}

/** Restarts each hub in turn, by SIGTERM, while requests to running servers and WebSockets go on. */
export async function restartEach(
  fleet: Fleet,
  say: (text: string) => void,
): Promise<RollingReport> {
  const headers = { authorization: `token ${adminToken}` };
  for (const name of userNames) {
    await fleet.api(`/users/${name}`, { method: 'POST' });
    await fleet.api(`/users/${name}/server`, { method: 'POST' });
  }
  for (const { url } of fleet.hubs)
    await Promise.all(userNames.map((name) => untilServed(url, name)));
  const failed: Record<string, number> = {};
  let requests = 0;
  let isRunning = true;
  let dropped = 0;
  const dispatcher = new Agent();

  async function request(name: string): Promise<void> {
    while (isRunning) {
      requests += 1;
      let outcome: string;
      try {
        const signal = AbortSignal.timeout(20_000);
        const address = `${fleet.url}user/${name}/`;
        const answer = await fetch(address, { headers, dispatcher, signal, redirect: 'manual' });
        await answer.arrayBuffer();
        outcome = String(answer.status);
      } catch (error) {
        outcome = String(error);
      }
      if (outcome !== '200') failed[outcome] = (failed[outcome] ?? 0) + 1;
      await pause(10);
    }
  }

  const sockets = await Promise.all(
    Array.from({ length: webSocketCount }, async (_, index) => {
      const name = userNames[index % userNames.length];
      const address = `${fleet.url.replace('http', 'ws')}user/${name}/socket`;
      const socket = new WebSocket(address, { headers });
      await once(socket, 'open');
      socket.on('error', () => {});
      socket.once('close', () => {
        if (isRunning) dropped += 1;
      });
      return socket;
    }),
  );
  const chatter = setInterval(() => {
    for (const socket of sockets) if (socket.readyState === WebSocket.OPEN) socket.send('hello');
  }, 200);
  const working = userNames.map(request);
  await pause(2_000);
  for (const hub of fleet.hubs) {
    await hub.end('SIGTERM');
    say(`${hub.name} has ended`);
    await hub.start();
    say(`${hub.name} is back`);
    await pause(2_000);
  }
  isRunning = false;
  await Promise.all(working);
  clearInterval(chatter);
  for (const socket of sockets) socket.terminate();
  await dispatcher.destroy();
  return { requests, failed, webSockets: webSocketCount, dropped };
}
