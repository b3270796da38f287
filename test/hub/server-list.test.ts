import { expect, test } from 'vitest';
import { submitTo } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { until } from '../support/test-hub.ts';
import { trivialApp } from '../support/trivial-app.ts';

test('an administrator sees and stops the servers of all users, and a lead those of a course', async () => {
  await using hub = await createPasswordHub(['ada', 'bob', 'carol', 'lead'], {
    Hub: {
      load_groups: [{ name: 'course', users: ['bob'] }],
      load_roles: [
        {
          name: 'leads',
          scopes: ['admin-ui', 'list:users!group=course', 'read:servers!group=course'],
          users: ['lead'],
        },
      ],
    },
    Spawner: { cmd: trivialApp() },
  });
  const ada = await hub.logIn('ada', testPassword);
  const url = `${hub.url}hub/admin/servers`;
  for (const name of ['bob', 'carol']) {
    await hub.api(`/users/${name}/server`, 'admin-service-token', { method: 'POST', body: '{}' });
  }
  const rows = async (query = '') => {
    const { body } = await ada.request(url + query);
    return [...body.matchAll(/data-key="\/(\w+)"/g)].map(([, name]) => name);
  };
  await until(async () => (await rows('?show=running')).length === 2, 'both run');
  expect(await rows('?search=car')).toEqual(['carol']);
  expect(await rows('?show=failed')).toEqual([]);
  const lead = await hub.logIn('lead', testPassword);
  const theirs = await lead.request(url);
  expect(theirs.body).toContain('/hub/servers/bob"');
  expect(theirs.body).not.toContain('carol');
  expect(theirs.body).not.toContain('name="user"');
  const page = await ada.request(url);
  await submitTo(ada, page, '/hub/admin/act-on-users', { user: 'bob' });
  await until(async () => (await rows()).join() === 'carol', 'the server of bob has stopped');
});
