import { join } from 'node:path';
import { expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { untilState } from '../support/services.ts';
import { createTestHub, submitForm } from '../support/test-hub.ts';

const project = join(import.meta.dirname, '..', '..');
const usersOpenServices = [{ name: 'user', scopes: ['self', 'access:services'] }];

test('a person is led through login and consent to the page of a service the hub started', async () => {
  const port = await freePort();
  await using hub = await createTestHub({
    Hub: {
      load_roles: usersOpenServices,
      services: [
        {
          name: 'whoami',
          url: `http://127.0.0.1:${port}`,
          command: [process.execPath, join(project, 'examples/whoami/whoami.ts')],
        },
      ],
    },
  });
  await untilState(hub, 'whoami', 'ready');

  const browser = await hub.logIn('alice');
  const consent = await browser.open(`${hub.url}services/whoami/`);
  expect(consent.body).toContain('Allow whoami?');
  const allowed = await submitForm(browser, consent, { decision: 'allow' });
  expect(allowed.status).toBe(302);
  const page = await browser.open(new URL(allowed.headers.location ?? '', hub.url).href);
  expect(page.status).toBe(200);
  expect(page.body).toContain('alice');
});
