import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startUpstream } from '../attacks/proxy-harness.ts';
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

test.for([
  ['the gateway asks for itself', {}, false],
  ['the operator wants the page', { oauth_no_confirm: false }, true],
  ['the service asks for more', { oauth_client_allowed_scopes: ['read:servers!user'] }, true],
  ['the codes go to the service', { oauth_redirect_uri: 'http://app.example/callback' }, true],
] as const)(
  'the consent page in front of a guarded service, when %s',
  async ([, fields, isAsked]) => {
    await using app = await startUpstream((_req, res) => void res.end('the app'));
    await using hub = await createTestHub({
      Hub: {
        load_roles: usersOpenServices,
        services: [
          {
            name: 'app',
            url: app.url,
            access: 'gateway',
            api_token: 'token-of-the-app',
            ...fields,
          },
        ],
      },
    });
    await untilState(hub, 'app', 'ready');
    const browser = await hub.logIn('alice');
    const authorize = new URL(
      'hub/api/oauth2/authorize?client_id=service-app&response_type=code',
      hub.url,
    );
    const answer = await browser.request(authorize.href);
    expect(answer.body.includes('name="decision"')).toBe(isAsked);
    if (!isAsked) expect((await browser.open(`${hub.url}services/app/`)).body).toBe('the app');
  },
);
