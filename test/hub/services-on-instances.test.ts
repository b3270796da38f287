import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { useOwnPostgres } from '../support/databases.ts';
import { freePort } from '../support/free-port.ts';
import { createHubFolder, type HubFolder, type ProcessConfig } from '../support/hub-process.ts';
import { copiesOf, watchCopies } from '../support/managed-copies.ts';
import { hasPostgres } from '../support/postgres.ts';
import { adminToken, isAlive } from '../support/server-hub.ts';
import {
  environmentOf,
  managedService,
  openWithConsent,
  serviceModel,
  untilState,
  usersOpenServices,
} from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const cookieSecret = 'c0ffee42d15ea5e5a1ad0ddba11f00d5c0ffee42d15ea5e5a1ad0ddba11f00d5';
const echo = 'fixtures/apps/gateway-app.cjs';
const prints = 'fixtures/apps/prints-environment.cjs';

interface Model {
  readonly state: string;
  readonly ready: boolean;
  readonly pid: number | null;
  readonly restarts: number;
  readonly instance: string | null;
  readonly stopped?: { readonly by: string | null } | null;
}

type Asked = Pick<TestHub, 'apiUrl'> | Pick<HubFolder, 'apiUrl'>;

async function modelAt({ apiUrl }: Asked, name: string): Promise<Model> {
  const answer = await fetch(`${apiUrl}/services/${name}`, {
    headers: { authorization: `token ${adminToken}` },
  });
  return (await answer.json()) as Model;
}

async function untilReady(hub: Asked, name: string): Promise<Model> {
  await until(async () => (await modelAt(hub, name)).ready, `the service ${name} is ready`);
  return modelAt(hub, name);
}

describe.skipIf(!hasPostgres())('a managed service of several instances', () => {
  const cluster = useOwnPostgres();

  /** Two hubs with the same services; the first one has them at the beginning. */
  async function startTwo(
    services: readonly unknown[],
    { isFar = false, ...config }: ProcessConfig & { readonly isFar?: boolean } = {},
  ) {
    const bind_url = `http://127.0.0.1:${await freePort()}/`;
    const shared = {
      ...config,
      Hub: {
        ...config.Hub,
        database_url: await cluster().createDatabase(),
        // As behind a load balancer that leads to the second one.
        public_url: bind_url,
        services,
      },
    };
    const port = await freePort();
    const first = await createTestHub({
      ...shared,
      Hub: {
        ...shared.Hub,
        hub_bind_url: `http://127.0.0.1:${port}`,
        // This machine too, but not by its name: a loopback address would be of its own machine only.
        instance_url: `http://0.0.0.0:${port}`,
      },
    });
    for (const service of services) await untilReady(first, (service as { name: string }).name);
    const second = await createTestHub(
      { ...shared, Hub: { ...shared.Hub, bind_url } },
      isFar ? { machineId: 'another machine' } : {},
    );
    const [here, there] = [nameOf(first), nameOf(second)];
    return { first, second, here, there };
  }

  const nameOf = ({ directory }: TestHub) => directory.split('/').at(-1);

  test('runs once, is reached, shown, read and restarted at each', async () => {
    const app = await managedService('one-copy', prints, { access: 'public' });
    const { first, second, here } = await startTwo([app]);
    const warnings = [...first.logLines, ...second.logLines].map(({ msg }) => String(msg));
    expect(warnings.filter((msg) => msg.includes('another machine'))).toEqual([]);
    await using _first = first;
    await using _second = second;
    await untilState(second, 'one-copy', 'ready');
    const model = await modelAt(first, 'one-copy');
    expect(await modelAt(second, 'one-copy')).toMatchObject({
      state: 'ready',
      instance: here,
      pid: model.pid,
      restarts: 0,
    });
    expect(await copiesOf('one-copy')).toEqual([model.pid]);
    for (const { hub } of [first, second]) {
      const { port } = hub.publicServer.address() as AddressInfo;
      const answer = await fetch(`http://127.0.0.1:${port}/services/one-copy/`);
      expect(await answer.json()).toMatchObject({ pid: model.pid });
    }

    const restarted = await second.api('/services/one-copy/restart', adminToken, {
      method: 'POST',
    });
    expect(restarted.status).toBe(202);
    await until(async () => {
      const { pid, ready } = await modelAt(second, 'one-copy');
      return ready && pid !== model.pid;
    }, 'the other instance shows the new process');
    expect(await serviceModel(first, 'one-copy')).toMatchObject({ restarts: 1, instance: here });
    expect(await copiesOf('one-copy')).toHaveLength(1);
    await until(
      async () => (await modelAt(second, 'one-copy')).restarts === 1,
      'restarts are told',
    );
  });

  test('shows at each what it writes', async () => {
    const later = 'while [ ! -e say ]; do sleep 0.1; done; echo said later';
    const command = ['sh', '-c', `echo said by the service; ${later}; exec sleep 600`];
    const { first, second } = await startTwo([{ name: 'writes', command }]);
    await using _first = first;
    await using _second = second;
    await untilState(second, 'writes', 'ready');
    const answer = await second.api('/services/writes/output', adminToken);
    expect(await answer.json()).toEqual({ lines: ['said by the service'] });

    const followed = await second.api('/services/writes/output?follow', adminToken);
    let reported = '';
    const reading = (async () => {
      for await (const part of followed.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        reported += part;
      }
    })();
    await until(() => reported.includes('said by the service'), 'the last lines are told');
    await writeFile(join(first.directory, 'say'), '');
    await until(() => reported.includes('said later'), 'what it writes now is told');
    await first[Symbol.asyncDispose]();
    await until(
      () => reported.split('said by the service').length > 2,
      'it moves with the service',
    );
    expect(reported).toContain('"restarted":true');
    await second[Symbol.asyncDispose]();
    await reading;
  });

  test('is stopped and started at each, and stays stopped when its instance goes', async () => {
    const app = await managedService('by-hand', prints, { access: 'public' });
    const beside = { name: 'beside', command: ['sleep', '600'] };
    const { first, second, there } = await startTwo([app, beside]);
    await using _second = second;
    await untilState(second, 'by-hand', 'ready');
    const { pid } = await modelAt(first, 'by-hand');
    const act = async (hub: TestHub, auditEvent: string) =>
      (await hub.api(`/services/by-hand/${auditEvent}`, adminToken, { method: 'POST' })).status;
    const isStopped = async (hub: TestHub) => {
      const { state, stopped } = await modelAt(hub, 'by-hand');
      return state === 'stopped' && stopped?.by === 'admin-service';
    };

    expect(await act(second, 'stop')).toBe(202);
    for (const hub of [first, second]) {
      await until(() => isStopped(hub), 'each knows that it is stopped');
    }
    expect(isAlive(pid ?? 0)).toBe(false);
    const page = await fetch(`${second.url}services/by-hand/`);
    expect([page.status, await page.text()]).toEqual([503, expect.stringContaining('stopped')]);

    expect(await act(second, 'start')).toBe(202);
    for (const hub of [first, second]) await untilState(hub, 'by-hand', 'ready');
    expect(await copiesOf('by-hand')).toHaveLength(1);

    expect(await act(first, 'stop')).toBe(202);
    await until(() => isStopped(second), 'it is stopped again');
    await first[Symbol.asyncDispose]();
    // In the round in which it takes this one, it would have taken the other.
    await until(async () => {
      const { ready, instance } = await modelAt(second, 'beside');
      return ready && instance === there;
    }, 'the other one runs what was not stopped');
    expect(await copiesOf('by-hand')).toEqual([]);
  });

  test('that only its own machine reaches is reached from another one, by its own guard', async () => {
    const services = [
      await managedService('open', echo, { access: 'public', strip_prefix: true }),
      await managedService('guarded', echo, { access: 'gateway' }),
    ];
    const { first, second } = await startTwo(services, {
      isFar: true,
      Hub: { load_roles: usersOpenServices },
      Proxy: { access_log: true },
    });
    await using _first = first;
    await using _second = second;
    const warning = () =>
      second.logLines.find(({ msg }) => String(msg).includes('on another machine cannot reach'));
    await until(() => warning() !== undefined, 'the one without an address says so');
    await untilState(second, 'guarded', 'ready');
    await untilState(second, 'open', 'ready');

    const posted = await fetch(`${second.url}services/open/upload`, {
      method: 'POST',
      body: 'x'.repeat(3_000_000),
    });
    expect(await posted.json()).toMatchObject({ bytes: 3_000_000 });
    const seen = (await (await fetch(`${second.url}services/open/?from=far`)).json()) as {
      headers: Record<string, string>;
    };
    expect(seen.headers['x-forwarded-host']).toBe(new URL(second.url).host);
    expect(JSON.stringify(seen)).not.toContain('hub-hop');
    const isThat = (line: Record<string, unknown>) =>
      line['path'] === '/services/open/' && line['route'] === '/services/open/';
    await until(() => first.logLines.some(isThat), 'its own instance has logged the request');
    expect(first.logLines.filter(isThat)).toHaveLength(1);
    expect(second.logLines.filter(isThat)).toEqual([]);

    const anonymous = await fetch(`${second.url}services/guarded/`);
    expect(anonymous.status).toBe(401);
    const browser = await second.logIn('alice');
    const page = await openWithConsent(browser, `${second.url}services/guarded/`);
    expect(JSON.parse(page.body)).toMatchObject({ headers: { 'x-hub-user': 'alice' } });

    const url = `${second.url.replace('http', 'ws')}services/guarded/socket`;
    const cookie = browser.cookieHeader(`${second.url}services/guarded/socket`);
    const origin = new URL(second.url).origin;
    const socket = new WebSocket(url, { headers: { cookie, origin } });
    await once(socket, 'open');
    socket.send('hello');
    const said: string[] = [];
    socket.on('message', (message) => said.push(String(message)));
    await until(() => said.includes('hello'), 'the WebSocket answers');
    const closed = once(socket, 'close');
    await browser.request(`${second.url}hub/logout`);
    expect((await closed)[0]).toBe(1008);
  });

  test('has a token that is good at each, until it is stopped', async () => {
    const app = await managedService('with-token', prints, { access: 'public', admin: true });
    const { first, second } = await startTwo([app]);
    await using _second = second;
    await untilState(second, 'with-token', 'ready');
    const reported = (await (await fetch(`${first.url}services/with-token/`)).json()) as {
      environment: Record<string, string>;
    };
    const token = reported.environment['HUB_API_TOKEN'] ?? '';
    expect(token).toMatch(/^hub_/);
    for (const hub of [first, second]) {
      expect((await hub.api('/users', token)).status).toBe(200);
    }
    await first[Symbol.asyncDispose]();
    await until(
      async () => (await second.api('/users', token)).status === 403,
      'the token of the stopped copy is refused',
    );
  });

  test('is handed over at once by an instance that stops', async () => {
    const app = await managedService('handed-over', prints, { access: 'public' });
    const { first, second, there } = await startTwo([app]);
    await using _second = second;
    await untilState(second, 'handed-over', 'ready');
    const copies = watchCopies('handed-over');
    const { pid } = await modelAt(first, 'handed-over');
    await first[Symbol.asyncDispose]();
    // It gave its lease back: nobody has to wait for the end of that.
    const answer = await second.api('/instances', adminToken);
    const { instances } = (await answer.json()) as { instances: { name: string; up: boolean }[] };
    expect(instances.filter(({ up }) => up)).toMatchObject([{ name: there }]);
    await until(async () => {
      const model = await modelAt(second, 'handed-over');
      return model.ready && model.instance === there;
    }, 'the other one runs it');
    expect(isAlive(pid ?? 0)).toBe(false);
    expect(await copies()).toBe(1);
  });

  test('that is added at run time is run, handed over, changed and ended as others are', async () => {
    const config = { Hub: { allow_managed_services_at_runtime: true } };
    const { first, second, there } = await startTwo([], config);
    await using _second = second;
    const ask = async (hub: TestHub, method: string, name: string, body?: object) => {
      const init = { method, ...(body !== undefined && { body: JSON.stringify(body) }) };
      const answer = await hub.api(`/services/${name}`, adminToken, init);
      expect([method, name, answer.ok]).toEqual([method, name, true]);
      const text = await answer.text();
      return (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>;
    };
    const { name, ...app } = await managedService('added-later', prints, {
      access: 'public',
      environment: { NOT_FOR_ALL: 'sealed at rest' },
    });
    const added = await ask(first, 'PUT', name, app);
    expect(JSON.stringify(added)).not.toContain('sealed at rest');
    await untilState(second, name, 'ready');
    const { pid } = await modelAt(second, name);
    await ask(second, 'PUT', name, app);
    expect((await modelAt(second, name)).pid).toBe(pid);

    const external = await ask(first, 'POST', 'told-to-all', {});
    const token = String(external['api_token']);
    const isKnown = async (hub: TestHub) => (await hub.api('/user', token)).status === 200;
    expect(await isKnown(first)).toBe(true);
    await until(() => isKnown(second), 'the other hub knows the token');
    await ask(second, 'DELETE', 'told-to-all');
    expect(await isKnown(second)).toBe(false);
    await until(async () => !(await isKnown(first)), 'the first hub has forgotten it');

    await first[Symbol.asyncDispose]();
    await until(async () => {
      const model = await modelAt(second, name);
      return model.ready && model.instance === there;
    }, 'the other one runs it');
    const reported = await environmentOf(second, name);
    expect(reported.environment['NOT_FOR_ALL']).toBe('sealed at rest');
    expect(await copiesOf(name)).toEqual([reported.pid]);
    await ask(second, 'DELETE', name);
    expect(await copiesOf(name)).toEqual([]);
    expect((await fetch(`${second.url}services/${name}/`)).status).toBe(404);
  });

  test('whose instance is killed is up again soon, and never runs twice', async () => {
    const shared = {
      database_url: await cluster().createDatabase(),
      cookie_secret: cookieSecret,
      services: [await managedService('orphaned', prints, { access: 'public' })],
    };
    await using folder = await createHubFolder({ Hub: shared });
    await using killed = await folder.start();
    const { pid } = await untilReady(folder, 'orphaned');
    await using other = await createTestHub({ Hub: shared });
    await untilReady(other, 'orphaned');
    const copies = watchCopies('orphaned');

    killed.signal('SIGKILL');
    await killed.exited;
    await until(async () => {
      const model = await modelAt(other, 'orphaned');
      return model.ready && model.instance === nameOf(other);
    }, 'the other one runs it');
    // Its own machine does not wait for the end of the lease.
    const noticed = other.logLines.filter(({ msg }) => String(msg) === 'instance lost');
    expect(noticed).toMatchObject([{ instance: basename(folder.directory) }]);
    expect(isAlive(pid ?? 0)).toBe(false);
    expect(await copies()).toBe(1);
    const takeover = other.logLines.filter(({ msg }) => String(msg).includes('taken over'));
    expect(takeover).toMatchObject([{ service: 'orphaned', from: basename(folder.directory) }]);
    const answer = await fetch(`${other.url}services/orphaned/`);
    expect(await answer.json()).toMatchObject({ pid: (await copiesOf('orphaned'))[0] });
  });

  test('is ended on a machine from which another one takes it over', async () => {
    const shared = {
      database_url: await cluster().createDatabase(),
      cookie_secret: cookieSecret,
    };
    const services = [{ name: 'left-behind', command: ['sleep', '600'] }];
    await using folder = await createHubFolder({ Hub: { ...shared, services } });
    await using killed = await folder.start();
    const { pid } = await untilReady(folder, 'left-behind');
    const port = await freePort();
    // Of the same machine as the one that is killed, but without the service.
    await using neighbour = await createTestHub({
      Hub: {
        ...shared,
        hub_bind_url: `http://127.0.0.1:${port}`,
        instance_url: `http://0.0.0.0:${port}`,
      },
    });
    await using far = await createTestHub(
      { Hub: { ...shared, services } },
      { machineId: 'another machine' },
    );
    await untilReady(far, 'left-behind');
    expect((await neighbour.api('/instances', adminToken)).status).toBe(200);
    const copies = watchCopies('left-behind');
    killed.signal('SIGKILL');
    await killed.exited;
    await until(async () => {
      const model = await modelAt(far, 'left-behind');
      return model.ready && model.instance === nameOf(far);
    }, 'the other machine runs it');
    expect(isAlive(pid ?? 0)).toBe(false);
    expect(await copies()).toBe(1);
  });

  test('whose instance was held up beyond its lease is not begun a second time by that', async () => {
    const shared = {
      database_url: await cluster().createDatabase(),
      cookie_secret: cookieSecret,
      services: [await managedService('held-up', prints, { access: 'public' })],
    };
    await using folder = await createHubFolder({ Hub: shared });
    await using stopped = await folder.start();
    await untilReady(folder, 'held-up');
    await using other = await createTestHub({ Hub: shared });
    await untilReady(other, 'held-up');
    const copies = watchCopies('held-up');
    stopped.signal('SIGSTOP');
    try {
      await until(async () => {
        const model = await modelAt(other, 'held-up');
        return model.ready && model.instance === nameOf(other);
      }, 'the other one runs it');
    } finally {
      stopped.signal('SIGCONT');
    }
    const { pid } = await modelAt(other, 'held-up');
    await until(
      async () => (await modelAt(folder, 'held-up')).instance === nameOf(other),
      'the one that was held up knows',
    );
    expect(await modelAt(folder, 'held-up')).toMatchObject({ ready: true, pid });
    expect(await copies()).toBe(1);
  });

  test('ends before its lease when the database is away, and comes back with it', async () => {
    const app = { name: 'cut-off', command: ['sleep', '600'] };
    const database_url = await cluster().createDatabase();
    await using hub = await createTestHub({ Hub: { database_url, services: [app] } });
    const { pid } = await untilReady(hub, 'cut-off');
    await cluster().stop();
    await until(() => !isAlive(pid ?? 0), 'the service is ended');
    await cluster().start();
    await untilReady(hub, 'cut-off');
    expect(await copiesOf('cut-off')).toHaveLength(1);
  });

  test('that two want in the same moment gets one, many times over', async () => {
    const shared = {
      database_url: await cluster().createDatabase(),
      services: Array.from({ length: 8 }, (_, index) => ({
        name: `wanted-${index}`,
        command: ['sleep', '600'],
      })),
    };
    await using _migrated = await createTestHub({ Hub: { ...shared, services: [] } });
    const hubs = await Promise.all([1, 2, 3].map(() => createTestHub({ Hub: shared })));
    try {
      for (const { name } of shared.services) {
        for (const hub of hubs) await untilReady(hub, name);
        expect(await copiesOf(name)).toHaveLength(1);
        const instances = await Promise.all(hubs.map((hub) => modelAt(hub, name)));
        expect(new Set(instances.map(({ instance }) => instance)).size).toBe(1);
      }
    } finally {
      await Promise.all(hubs.map((hub) => hub[Symbol.asyncDispose]()));
    }
    for (const { name } of shared.services) expect(await copiesOf(name)).toEqual([]);
  });
});
