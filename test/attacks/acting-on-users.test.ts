import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { hasPostgres } from '../support/postgres.ts';
import { createTestHub, type TestHub, type TestHubConfig } from '../support/test-hub.ts';

const adminToken = 'admin-service-token';

/** A request of the administrators' service, which must succeed. */
async function asAdmin(hub: TestHub, path: string, method = 'GET', body?: unknown) {
  const answer = await call(hub, adminToken, path, method, body);
  expect(answer.status, `${method} ${path}`).toBeLessThan(300);
  return answer.body;
}

async function call(
  hub: TestHub,
  token: string,
  path: string,
  method = 'GET',
  body?: unknown,
): Promise<{ readonly status: number; readonly body: Record<string, unknown> }> {
  const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
  const response = await hub.api(path, token, init);
  const text = await response.text();
  return { status: response.status, body: text === '' ? {} : JSON.parse(text) };
}

/** A hub with these users, and an unlimited token for each of them. */
async function createPopulatedHub<Name extends string>(
  config: TestHubConfig,
  names: readonly Name[],
): Promise<TestHub & { readonly tokens: Readonly<Record<Name, string>> }> {
  const hub = await createTestHub(config);
  await hub.api('/users', adminToken, {
    method: 'POST',
    body: JSON.stringify({ usernames: names }),
  });
  const tokens = {} as Record<Name, string>;
  for (const name of names) {
    const { token } = await asAdmin(hub, `/users/${name}/tokens`, 'POST');
    tokens[name] = String(token);
  }
  return Object.assign(hub, { tokens });
}

function declareActivityAttacks(configure: () => Promise<TestHubConfig>) {
  test('an empty report stops the recording of nobody else', async () => {
    await using hub = await createPopulatedHub(await configure(), ['eve', 'victim']);
    const report = (name: 'eve' | 'victim', body: unknown) =>
      call(hub, hub.tokens[name], `/users/${name}/activity`, 'POST', body);
    const at = new Date(Date.now() + 60_000).toISOString();
    expect((await report('victim', { last_activity: at })).status).toBe(200);
    const absurd = ['9999-01-01T00:00:00Z', '2026-02-30T00:00:00Z', '+275760-09-13T00:00:00.001Z'];
    for (const body of [{ servers: {} }, ...absurd.map((time) => ({ last_activity: time }))]) {
      expect((await report('eve', body)).status, JSON.stringify(body)).toBe(400);
    }
    expect((await asAdmin(hub, '/users/victim'))['last_activity']).toBe(at);
  });
}

describe('activity (SQLite)', () => declareActivityAttacks(async () => ({})));

describe.skipIf(!hasPostgres())('activity (PostgreSQL)', () => {
  const cluster = usePostgres();
  declareActivityAttacks(async () => ({ Hub: { database_url: await cluster().createDatabase() } }));
});
