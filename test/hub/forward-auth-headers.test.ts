import { expect, test } from 'vitest';
import { usersOpenServices } from '../support/services.ts';
import { createTestHub } from '../support/test-hub.ts';

test('forward-auth answers under the headers that an app reads, empty where no one is asked for', async () => {
  await using hub = await createTestHub({
    Hub: { load_roles: usersOpenServices, trusted_proxies: ['127.0.0.1'] },
    Proxy: {
      extra_routes: {
        'books.example.org/': {
          access: 'forward-auth',
          identity_headers: { user: 'X-Remote-User' },
          rules: [{ paths: ['/public/*'], allow: 'everyone' }],
        },
      },
    },
  });
  await hub.logIn('alice');
  const made = await hub.api('/users/alice/tokens', 'admin-service-token', {
    method: 'POST',
    body: '{}',
  });
  const { token } = (await made.json()) as { token: string };
  const askAbout = async (path: string) => {
    const { status, headers } = await fetch(`${hub.url}hub/forward-auth`, {
      headers: {
        authorization: `token ${token}`,
        'x-forwarded-method': 'GET',
        'x-forwarded-host': 'books.example.org',
        'x-forwarded-uri': path,
        'x-remote-user': 'root',
      },
    });
    return [status, headers.get('x-remote-user'), headers.get('x-hub-user')];
  };
  expect(await askAbout('/')).toEqual([200, 'alice', 'alice']);
  expect(await askAbout('/public/')).toEqual([200, '', '']);
});
