import { expect, test } from 'vitest';
import { changeDatabase } from '../support/hub-database.ts';
import { serversInHub } from '../support/in-hub-servers.ts';
import { submitMain, submitTo } from '../support/pages.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { until } from '../support/test-hub.ts';

test('an administrator sees and stops the servers of all users, and a lead those of a course', async () => {
  await using hub = await createPasswordHub(['ada', 'bob', 'carol', 'lead'], {
    Hub: {
      ...serversInHub.Hub,
      load_groups: [{ name: 'course', users: ['bob'] }],
      load_roles: [
        {
          name: 'leads',
          scopes: ['admin-ui', 'list:users!group=course', 'read:servers!group=course'],
          users: ['lead'],
        },
      ],
    },
    Spawner: serversInHub.Spawner,
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
  expect(await rows('?sort=-name')).toEqual(['carol', 'bob']);
  const sorted = await ada.request(`${url}?sort=name&show=running`);
  expect(sorted.body).toContain(
    'aria-sort="ascending"><a href="/hub/admin/servers?show=running&amp;sort=-name">',
  );
  expect(await rows('?show=failed')).toEqual([]);
  const lead = await hub.logIn('lead', testPassword);
  const theirs = await lead.request(url);
  expect(theirs.body).toContain('/hub/servers/bob"');
  expect(theirs.body).not.toContain('carol');
  expect(theirs.body).not.toContain('name="user"');
  const page = await ada.request(url);
  // Of the two, one is used: that one keeps running.
  await changeDatabase(hub, (database) => {
    const at = Date.now() - 3 * 3_600_000;
    const ofCarol = "user_id = (select id from users where name = 'carol')";
    database.exec(
      `update servers set last_activity_at = ${at}, started_at = ${at} where ${ofCarol}`,
    );
  });
  const stopIdle = async (user: string) => {
    const ask = await submitTo(ada, page, '/hub/admin/act-on-users', { act: 'stopIdle', user });
    const wrong = await submitMain(ada, ask, { idle_minutes: 'x' });
    expect(wrong.body).toContain('Type a number of minutes.');
    await submitMain(ada, wrong, { idle_minutes: '60' });
  };
  await stopIdle('bob');
  expect(await rows('?show=running')).toEqual(['bob', 'carol']);
  await stopIdle('carol');
  await until(async () => (await rows()).join() === 'bob', 'the server of carol has stopped');
  await submitTo(ada, page, '/hub/admin/act-on-users', { act: 'stop', user: 'bob' });
  await until(async () => (await rows()).length === 0, 'the server of bob has stopped');
});
