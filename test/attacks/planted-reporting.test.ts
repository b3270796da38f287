import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createTestHub } from '../support/test-hub.ts';

const paths = ['hub/login', 'hub/api/', 'hub/api/user', 'hub/no-such-page', 'user/nobody/'];

test('a reporting policy planted on the origin ends with the next answer of an https hub', async () => {
  await using hub = await createTestHub({ Hub: { public_url: 'https://hub.example.org/' } });
  const { port } = hub.hub.publicServer.address() as AddressInfo;
  for (const path of paths) {
    const { headers } = await new FakeBrowser().request(`http://127.0.0.1:${port}/${path}`);
    // Network Error Logging, `max_age`: 0 removes the policy of the origin.
    expect(JSON.parse(String(headers['nel'])), path).toStrictEqual({ max_age: 0 });
  }
});

test('on plain http, where browsers keep no such policy, nothing is sent', async () => {
  await using hub = await createTestHub();
  for (const path of paths) {
    const { headers } = await new FakeBrowser().request(`${hub.url}${path}`);
    expect(headers, path).not.toHaveProperty('nel');
  }
});
