import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { hasHaproxy, startHaproxy } from '../support/haproxy.ts';
import {
  hasPostgres,
  type PostgresCluster,
  queryPostgres,
  startPostgres,
} from '../support/postgres.ts';
import { adminToken } from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const replicated = { wal_level: 'replica', max_wal_senders: 4, synchronous_standby_names: '' };

/** HAProxy before both, as the documentation has it; one hub is behind it, and one knows both. */
function haproxyBefore(port: number, primary: PostgresCluster, standby: PostgresCluster): string {
  const page = readFileSync(join(projectDirectory, 'docs/how-to/scale.md'), 'utf8');
  const [, configuration = ''] = /```haproxy\n(.*?)```/s.exec(page) ?? [];
  return configuration
    .replace('127.0.0.1:5432', `127.0.0.1:${port}`)
    .replace('10.0.0.20:5432', `127.0.0.1:${primary.port}`)
    .replace('10.0.0.21:5432', `127.0.0.1:${standby.port}`);
}

describe.skipIf(!hasPostgres() || !hasHaproxy())('a hub whose PostgreSQL fails over', () => {
  test('goes on with the standby, with all that was acknowledged, logins included', async () => {
    await using primary = await startPostgres({ settings: replicated });
    const database = new URL(await primary.createDatabase());
    await using standby = await startPostgres({ settings: replicated, standbyOf: primary });
    const atPrimary = String(database);
    // From now on an answer means that the standby has it too.
    await queryPostgres(atPrimary, "alter system set synchronous_standby_names = '*'");
    await queryPostgres(atPrimary, 'select pg_reload_conf()');
    const port = await freePort();
    await using _proxy = await startHaproxy(haproxyBefore(port, primary, standby), [port]);
    database.port = String(port);

    const { username, password, pathname } = database;
    // The standby first: it takes no writes.
    const hosts = [standby, primary].map((each) => `127.0.0.1:${each.port}`).join(',');
    const ofBoth = `postgresql://${username}:${password}@${hosts}${pathname}?target_session_attrs=read-write`;
    await using first = await createTestHub({ Hub: { database_url: String(database) } });
    await using second = await createTestHub({ Hub: { database_url: ofBoth } });
    let count = 0;
    const written: string[] = [];
    async function write(hub: TestHub): Promise<number> {
      count += 1;
      const name = `user-${count}`;
      const { status } = await hub.api(`/users/${name}`, adminToken, { method: 'POST' });
      if (status === 201) written.push(name);
      else expect(status).toBe(503);
      return status;
    }
    for (const hub of [first, second, first]) expect(await write(hub)).toBe(201);
    const browser = await first.logIn('ada');

    await primary.stop();
    await until(async () => (await write(first)) === 503, 'the loss is noticed');
    // A standby answers questions and takes no writes: no hub may take that for its database.
    await until(
      async () => (await fetch(`${second.url}hub/ready`)).status === 503,
      'no hub counts as ready',
    );
    database.port = String(standby.port);
    const [promotion] = await queryPostgres<{ pg_promote: boolean }>(
      String(database),
      'select pg_promote()',
    );
    expect(promotion).toEqual({ pg_promote: true });
    // It would wait for a standby of its own.
    await queryPostgres(String(database), "alter system set synchronous_standby_names = ''");
    await queryPostgres(String(database), 'select pg_reload_conf()');

    for (const hub of [first, second]) {
      await until(async () => (await write(hub)) === 201, 'users are created again');
      await until(
        async () => (await fetch(`${hub.url}hub/ready`)).status === 200,
        'hub ready again',
      );
    }
    for (const name of written) {
      expect((await second.api(`/users/${name}`, adminToken)).status).toBe(200);
    }
    // What one changes, the other one hears of, and a login that was there before is still one.
    expect((await browser.request(`${second.url}hub/home`)).status).toBe(200);
    expect((await second.api('/users/ada', adminToken, { method: 'DELETE' })).status).toBe(204);
    await until(
      async () => (await browser.request(`${first.url}hub/home`)).status === 302,
      'the deleted user is logged out at both',
    );
  });
});
