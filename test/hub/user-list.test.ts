import { expect, test } from 'vitest';
import {
  adminToken,
  createServerHub,
  createUsers,
  serverPath,
  startServer,
  stopServer,
} from '../support/server-hub.ts';

interface Page {
  readonly items: readonly { readonly name: string }[];
  readonly _pagination: { readonly next: { readonly url: string } | null };
}

test('the next page of a list is named by an address that can be asked as it stands', async () => {
  await using hub = await createServerHub();
  await createUsers(hub, 'ann', 'bea', 'cleo');
  const headers = {
    authorization: `token ${adminToken}`,
    accept: 'application/jupyterhub-pagination+json',
  };
  // At the address where the client asked: servers and services may reach no other.
  for (const start of [`${hub.apiUrl}/users?limit=2`, `${hub.url}hub/api/users?limit=2`]) {
    const first = (await (await fetch(start, { headers })).json()) as Page;
    const { url = '' } = first._pagination.next ?? {};
    expect(new URL(url).origin).toBe(new URL(start).origin);
    const second = (await (await fetch(url, { headers })).json()) as Page;
    expect([...first.items, ...second.items].map(({ name }) => name)).toEqual([
      'ann',
      'bea',
      'cleo',
    ]);
    expect(second._pagination.next).toBeNull();
  }
});

test('servers that are stopped are in the model of their user only when asked for', async () => {
  await using hub = await createServerHub();
  await createUsers(hub, 'ann');
  const serversIn = async (path: string) => {
    const user = (await (await hub.api(path, adminToken)).json()) as { servers: object };
    return Object.keys(user.servers);
  };
  await startServer(hub, serverPath('ann'));
  expect(await serversIn('/users/ann')).toEqual(['']);
  await stopServer(hub, serverPath('ann'));
  expect(await serversIn('/users/ann')).toEqual([]);
  expect(await serversIn('/users/ann?include_stopped_servers=true')).toEqual(['']);
  expect(await serversIn('/users/ann?include_stopped_servers=false')).toEqual([]);
});
