import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { usePostgres } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { startGateway } from '../support/gateway-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  fixtureApp,
  serverPath,
  startUntilReady,
  tokenOf,
} from '../support/server-hub.ts';
import { managedService, untilState } from '../support/services.ts';
import { type TestHub, until } from '../support/test-hub.ts';

interface Load {
  readonly step_seconds: number;
  readonly cpu_cores: readonly (number | null)[];
  readonly memory_bytes: readonly (number | null)[];
  readonly requests_per_second: readonly (number | null)[];
  readonly response_seconds: readonly (number | null)[];
  readonly web_sockets: readonly (number | null)[];
  readonly missing_instances: readonly string[];
}

async function loadOf(hub: TestHub, path: string, token = adminToken): Promise<Load> {
  const answer = await hub.api(path, token);
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Load;
}

const isMeasured = (figures: readonly (number | null)[]) =>
  figures.some((figure) => (figure ?? 0) > 0);

async function visit(url: string, token: string, times: number): Promise<void> {
  const headers = { authorization: `token ${token}` };
  for (let time = 0; time < times; time += 1) {
    const answer = await fetch(url, { headers });
    expect(answer.status).toBe(200);
    await answer.arrayBuffer();
  }
}

async function openSocket(url: string, token: string): Promise<WebSocket> {
  const socket = new WebSocket(url.replace('http', 'ws'), {
    headers: { authorization: `token ${token}` },
  });
  await once(socket, 'open');
  return socket;
}

const Spawner = { cmd: fixtureApp('gateway-app'), access: 'gateway' };

describe('how busy servers and services were', () => {
  let hub: TestHub;
  let token: string;
  beforeAll(async () => {
    hub = await createServerHub({
      Hub: {
        // Where the gateway process listens.
        public_url: `http://127.0.0.1:${await freePort()}/`,
        services: [
          await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'public' }),
        ],
      },
      Spawner,
    });
    await createUsers(hub, 'alice', 'bob');
    await untilState(hub, 'app', 'ready');
    await startUntilReady(hub, serverPath('alice'));
    token = await tokenOf(hub, 'alice');
  });
  afterAll(async () => hub[Symbol.asyncDispose]());

  test('what a server and a service use, and what a gateway process leads to them', async () => {
    await using gateway = await startGateway(hub);
    const socket = await openSocket(`${gateway.url}user/alice/socket`, token);
    await visit(`${gateway.url}user/alice/`, token, 7);
    await visit(`${gateway.url}services/app/`, token, 3);
    let server: Load | undefined;
    await until(async () => {
      server = await loadOf(hub, `${serverPath('alice')}/load`);
      return [server.memory_bytes, server.requests_per_second, server.web_sockets].every(
        isMeasured,
      );
    }, 'the server is measured');
    socket.close();
    expect(isMeasured(server?.response_seconds ?? [])).toBe(true);

    let service: Load | undefined;
    await until(async () => {
      service = await loadOf(hub, '/services/app/load');
      return [service.memory_bytes, service.requests_per_second].every(isMeasured);
    }, 'the service is measured');
    const { instances } = (await (await hub.api('/instances/load', adminToken)).json()) as {
      readonly instances: Record<string, Load>;
    };
    expect(Object.values(instances).map(({ memory_bytes }) => isMeasured(memory_bytes))).toEqual([
      true,
    ]);
  });

  test('the day is told in steps of five minutes, and another span is refused', async () => {
    const day = await loadOf(hub, `${serverPath('alice')}/load?span=day`);
    expect(day.step_seconds).toBe(300);
    const wrong = await hub.api(`${serverPath('alice')}/load?span=year`, adminToken);
    expect(wrong.status).toBe(400);
  });

  test('is for those who may read the server', async () => {
    const bob = await tokenOf(hub, 'bob');
    expect((await hub.api(`${serverPath('alice')}/load`, bob)).status).toBe(404);
    expect((await hub.api(`${serverPath('alice')}/load`, token)).status).toBe(200);
    expect((await hub.api('/instances/load', bob)).status).toBe(403);
  });
});

describe.skipIf(!hasPostgres())('how busy things of several instances were', () => {
  const cluster = usePostgres();

  test('is told by all together, and who is missing is said', async () => {
    const Hub = { database_url: await cluster().createDatabase(), cleanup_servers: true };
    const first = await createServerHub({ Hub: { ...Hub, instance_name: 'first' }, Spawner });
    await using second = await createServerHub({
      Hub: { ...Hub, instance_name: 'second' },
      Spawner,
    });
    try {
      await createUsers(first, 'alice');
      await startUntilReady(first, serverPath('alice'));
      const token = await tokenOf(first, 'alice');
      const address = `${second.url}user/alice/`;
      await until(async () => {
        const answer = await fetch(address, { headers: { authorization: `token ${token}` } });
        await answer.arrayBuffer();
        return answer.status === 200;
      }, 'the second leads to it');
      await visit(address, token, 20);
      let load: Load | undefined;
      await until(async () => {
        load = await loadOf(second, `${serverPath('alice')}/load`);
        return [load.memory_bytes, load.requests_per_second].every(isMeasured);
      }, 'the one measures, the other counts');
      expect(load?.missing_instances).toEqual([]);
      // It is there for the others, and does not answer them.
      first.hub.internalServer.close();
      first.hub.internalServer.closeAllConnections();
      await until(async () => {
        load = await loadOf(second, `${serverPath('alice')}/load`);
        return load.missing_instances.length > 0;
      }, 'it is missed');
      expect(load?.missing_instances).toEqual(['first']);
      expect(isMeasured(load?.requests_per_second ?? [])).toBe(true);
    } finally {
      await first[Symbol.asyncDispose]();
    }
  });
});
