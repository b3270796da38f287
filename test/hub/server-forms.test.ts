import { expect, test } from 'vitest';
import { submitTo } from '../support/pages.ts';
import { createTestHub } from '../support/test-hub.ts';

const withServers = {
  Hub: { allow_named_servers: true },
  Authenticator: { admin_users: ['ada'] },
  Spawner: { cmd: [process.execPath, '-e', 'setInterval(() => {}, 1000)'], start_timeout: 600 },
};

test('a server name that cannot be is explained beside its field', async () => {
  await using hub = await createTestHub(withServers);
  const bob = await hub.logIn('bob');
  const home = await bob.request(`${hub.url}hub/home`);
  const wrong = await submitTo(bob, home, '/hub/create-server', { name: 'No Such Name' });
  expect(wrong.status).toBe(400);
  expect(wrong.body).toContain('A server cannot have this name.');
  expect(wrong.body).toContain('value="No Such Name"');
  const made = await submitTo(bob, home, '/hub/create-server', { name: 'thesis' });
  expect(made.headers.location).toBe('/hub/spawn/bob/thesis');
  const twice = await submitTo(bob, home, '/hub/create-server', { name: 'thesis' });
  expect(twice.body).toContain('This server exists already.');
  // Somebody else's are not theirs to make.
  const others = await submitTo(bob, home, '/hub/create-server', { name: 'mine', user: 'ada' });
  expect(others.status).toBe(404);
});

test('starting and stopping leads back to the page of the button, and to no other site', async () => {
  await using hub = await createTestHub(withServers);
  await hub.logIn('bob');
  const ada = await hub.logIn('ada');
  const list = await ada.request(`${hub.url}hub/admin/users`);
  const started = await submitTo(ada, list, '/hub/spawn/bob');
  expect(started.headers.location).toBe('/hub/admin/users');
  const page = await ada.request(`${hub.url}hub/admin/users/bob`);
  const stopped = await submitTo(ada, page, '/hub/stop/bob');
  expect(stopped.headers.location).toBe('/hub/admin/users/bob');
  const away = await submitTo(ada, page, '/hub/stop/bob', { return_to: '//evil.example/' });
  expect(away.headers.location).toBe('/hub/admin/users');
});
