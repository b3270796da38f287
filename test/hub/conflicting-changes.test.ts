import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { listProcessTags } from '../../src/spawning/processes/process-tag.ts';
import { usePostgres } from '../support/databases.ts';
import { hasPostgres, queryPostgres } from '../support/postgres.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  getServer,
  type ServerModel,
  serverPath,
  startServer,
  stopServer,
} from '../support/server-hub.ts';
import { type TestHub, until } from '../support/test-hub.ts';

const rounds = 5;

describe.skipIf(!hasPostgres())('what administrators do at two hubs in the same moment', () => {
  const cluster = usePostgres();
  let hubs: readonly [TestHub, TestHub];
  let hubId: string;
  beforeAll(async () => {
    const Hub = { database_url: await cluster().createDatabase() };
    hubs = [await createServerHub({ Hub }), await createServerHub({ Hub })];
    const [setting] = await queryPostgres<{ value: string }>(
      Hub.database_url,
      "select value from settings where key = 'hub_id'",
    );
    hubId = setting?.value ?? 'unknown';
  });
  afterAll(async () => {
    for (const hub of hubs) await hub[Symbol.asyncDispose]();
  });

  /** Processes of servers that either hub has started. */
  async function running(): Promise<number> {
    const tags = await listProcessTags();
    return [...tags].filter(([tag]) => tag.includes(hubId)).flatMap(([, pids]) => pids).length;
  }

  const users = (hub: TestHub, name: string, method = 'GET', body?: object) =>
    hub.api(`/users/${name}`, adminToken, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });

  /** Does both at once, the one or the other a little earlier. */
  async function atOnce(
    round: number,
    one: () => Promise<Response>,
    other: () => Promise<Response>,
  ): Promise<readonly [number, number]> {
    const turns = [one, other].map(async (work, index) => {
      // From one ahead by some of the steps of a start to the other.
      const stepMs = 15 * (index === 0 ? Math.max(0, round - 2) : Math.max(0, 2 - round));
      await new Promise((resolve) => setTimeout(resolve, stepMs));
      const answer = await work();
      const said = await answer.text();
      expect([answer.status < 500, said]).toEqual([true, said]);
      return answer.status;
    });
    const [first = 0, second = 0] = await Promise.all(turns);
    return [first, second];
  }

  test('a user is deleted and their server started: nothing of either is left', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const name = `deleted-${round}`;
      await createUsers(hubs[0], name);
      const [, deleted] = await atOnce(
        round,
        () => startServer(hubs[0], serverPath(name)),
        () => users(hubs[1], name, 'DELETE'),
      );
      // Refused where the start came in between: asked again, it is done.
      if (deleted !== 204) expect((await users(hubs[1], name, 'DELETE')).status).toBe(204);
      for (const hub of hubs) expect((await users(hub, name)).status).toBe(404);
    }
    await until(async () => (await running()) === 0, 'no process is left');
  });

  test('a server is started and stopped: it runs or it does not, and both hubs say the same', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const name = `stopped-${round}`;
      const path = serverPath(name);
      await createUsers(hubs[0], name);
      await atOnce(
        round,
        () => startServer(hubs[0], path),
        () => stopServer(hubs[1], path),
      );
      await until(async () => {
        const views = await Promise.all(hubs.map((hub) => getServer(hub, path)));
        return views.every(
          ({ ready, stopped }) =>
            ready === views[0]?.ready && stopped === views[0]?.stopped && ready !== stopped,
        );
      }, 'it runs or is stopped, at both');
      const { ready } = await getServer(hubs[0], path);
      expect(await running()).toBe(ready ? 1 : 0);
      await stopServer(hubs[1], path);
      for (const hub of hubs) expect(await getServer(hub, path)).toMatchObject({ stopped: true });
    }
    await until(async () => (await running()) === 0, 'no process is left');
  });

  test('a user is renamed and their server started: what runs is that of the new name, or nothing', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const [name, renamed] = [`former-${round}`, `latter-${round}`];
      await createUsers(hubs[0], name);
      const [, status] = await atOnce(
        round,
        () => startServer(hubs[0], serverPath(name)),
        () => users(hubs[1], name, 'PATCH', { name: renamed }),
      );
      const current = status === 200 ? renamed : name;
      const path = serverPath(current);
      const read = async (hub: TestHub) => {
        const answer = await hub.api(path, adminToken);
        // Never started, it is not even known.
        return answer.status === 404 ? undefined : ((await answer.json()) as ServerModel);
      };
      await until(async () => {
        const server = await read(hubs[1]);
        return server === undefined || server.ready || server.stopped;
      }, 'the start is over');
      const server = await read(hubs[0]);
      if (server?.ready === true) expect(server.url).toBe(`/user/${current}/`);
      if (server !== undefined) await stopServer(hubs[0], path);
    }
    await until(async () => (await running()) === 0, 'no process is left');
  });

  test('what both have read is changed by one, and the other is told', async () => {
    const call = (hub: TestHub, path: string, method = 'GET', body?: object, etag?: string) =>
      hub.api(path, adminToken, {
        method,
        ...(etag !== undefined && { headers: { 'if-match': etag } }),
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
    await call(hubs[0], '/groups/raced', 'POST');
    await call(hubs[0], '/roles/raced', 'POST', { scopes: [] });
    const kinds = [
      ['/announcement', 'PUT', (text: string) => ({ text })],
      ['/maintenance', 'PUT', (text: string) => ({ text })],
      ['/groups/raced', 'PUT', (quota: string) => ({ quota }), '/properties'],
      ['/roles/raced', 'PATCH', (description: string) => ({ description })],
    ] as const;
    for (const [path, method, bodyOf, part = ''] of kinds) {
      for (let round = 0; round < rounds; round += 1) {
        let etags: (string | null)[] = [];
        await until(async () => {
          const answers = await Promise.all(hubs.map((hub) => call(hub, path)));
          etags = answers.map(({ headers }) => headers.get('etag'));
          return etags[0] === etags[1];
        }, 'both have read the same');
        const change = (hub: TestHub, said: string) =>
          call(hub, path + part, method, bodyOf(`${said} ${round}`), etags[0] ?? '');
        const statuses = await atOnce(
          round,
          () => change(hubs[0], 'one'),
          () => change(hubs[1], 'other'),
        );
        const made = statuses.filter((status) => status === 200);
        expect([path, statuses, made]).toEqual([path, statuses, [200]]);
        for (const status of statuses) expect([200, 409, 412]).toContain(status);
      }
    }
    for (const [path] of kinds) expect((await call(hubs[0], path, 'DELETE')).status).toBe(204);
  });

  test('a server is shared and the share ended: it is what the audit log says last', async () => {
    await createUsers(hubs[0], 'owner', 'reader');
    await startServer(hubs[0], serverPath('owner'));
    const shares = (hub: TestHub, method: string) =>
      hub.api('/shares/owner/', adminToken, { method, body: JSON.stringify({ user: 'reader' }) });
    for (let round = 0; round < rounds; round += 1) {
      const [granted, ended] = await atOnce(
        round,
        () => shares(hubs[0], 'POST'),
        () => shares(hubs[1], 'PATCH'),
      );
      expect([[200, 409], ended]).toEqual([expect.arrayContaining([granted]), 200]);
      const audit = await hubs[0].api('/audit?target=owner&limit=1', adminToken);
      const { entries } = (await audit.json()) as { entries: { action: string }[] };
      for (const hub of hubs) {
        const shared = await (await hub.api('/users/reader/shared', adminToken)).json();
        const isShared = (shared as { items: object[] }).items.length > 0;
        expect([round, isShared]).toEqual([round, entries[0]?.action === 'share.grant']);
      }
    }
    await stopServer(hubs[0], serverPath('owner'));
  });

  test('a user is deleted twice: once it is done, once there is none', async () => {
    for (let round = 0; round < rounds; round += 1) {
      const name = `twice-${round}`;
      await createUsers(hubs[0], name);
      const statuses = await atOnce(
        2,
        () => users(hubs[0], name, 'DELETE'),
        () => users(hubs[1], name, 'DELETE'),
      );
      expect(statuses).toContain(204);
      for (const status of statuses) expect([204, 404]).toContain(status);
    }
  });
});
