import { expect, test } from 'vitest';
import { serversInHub } from '../support/in-hub-servers.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { until } from '../support/test-hub.ts';

const command = [process.execPath, '-e', 'process.exit(1)'];

test('an administrator sees that all is well, or what is not, each with its list', async () => {
  await using hub = await createPasswordHub(['ada'], {
    Hub: { services: [{ name: 'broken', url: 'http://127.0.0.1:9', access: 'gateway' }] },
  });
  const ada = await hub.logIn('ada', testPassword);
  const overview = async () => (await ada.request(`${hub.url}hub/admin`)).body;
  let body = '';
  await until(async () => {
    body = await overview();
    return body.includes('1 service does not answer');
  }, 'the service is known not to answer');
  expect(body).not.toContain('All well');
  expect(body).toContain('href="/hub/admin/services?show=unhealthy"');
  expect(body).toMatch(/href="\/hub\/admin\/users">Users <b>1<\/b>/);
  expect(body).toContain('href="/hub/admin/activity">All activity');
  // An address of the list of users as it was once.
  const old = await ada.request(`${hub.url}hub/admin?search=ada`);
  expect([old.status, old.headers.location]).toEqual([302, '/hub/admin/users?search=ada']);
});

test('an administrator is warned before no more servers can run', async () => {
  await using hub = await createPasswordHub(['ada'], {
    Hub: { ...serversInHub.Hub, active_server_limit: 1 },
    Spawner: serversInHub.Spawner,
  });
  const ada = await hub.logIn('ada', testPassword);
  const overview = async () => (await ada.request(`${hub.url}hub/admin`)).body;
  expect(await overview()).toContain('All well');
  await hub.api('/users/ada/server', 'admin-service-token', { method: 'POST', body: '{}' });
  expect(await overview()).toContain('1 of the 1 servers that can run at once');
});

test('who administers a part has an overview of that part', async () => {
  await using hub = await createPasswordHub(['ada', 'lead', 'member', 'outsider'], {
    Hub: {
      services: [{ name: 'broken', command }],
      load_groups: [{ name: 'course', users: ['member', 'ada'] }],
      load_roles: [
        { name: 'lead', scopes: ['admin-ui', 'list:users!group=course'], users: ['lead'] },
      ],
    },
  });
  const lead = await hub.logIn('lead', testPassword);
  const { body } = await lead.request(`${hub.url}hub/admin`);
  expect(body).toContain('All well');
  expect(body).toMatch(/href="\/hub\/admin\/users">Users <b>2<\/b>/);
  for (const hidden of ['/admin/services', 'Instances', 'running server', 'activity'])
    expect(body, hidden).not.toContain(hidden);
});
