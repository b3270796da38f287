import { expect } from 'vitest';
import { adminToken } from './server-hub.ts';
import { createTestHub, type TestHub, type TestHubConfig } from './test-hub.ts';

/** A request of the administrators' service, which must succeed. */
export async function asAdmin(hub: TestHub, path: string, method = 'GET', body?: unknown) {
  const answer = await call(hub, adminToken, path, method, body);
  expect(answer.status, `${method} ${path}`).toBeLessThan(300);
  return answer.body;
}

/** A request with a token, and its answer. */
export async function call(
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
export async function createPopulatedHub<Name extends string>(
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
