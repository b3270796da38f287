import { readFile, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import {
  environmentOf,
  managedService,
  openWithConsent,
  printsEnvironment,
  projectDirectory,
  serviceModel,
  untilState,
  usersOpenServices,
} from '../support/services.ts';
import { type SharedPrograms, sharePrograms } from '../support/shared-programs.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const isRoot = process.getuid?.() === 0;
let hub: TestHub;
let externalPort: number;
let programs: SharedPrograms;

beforeAll(async () => {
  externalPort = await freePort();
  programs = await sharePrograms('prints-environment.cjs');
  hub = await createTestHub({
    Hub: {
      load_roles: [
        ...usersOpenServices,
        {
          name: 'lists-users',
          scopes: ['list:users', 'read:users:activity'],
          services: ['reader'],
        },
      ],
      custom_scopes: { 'custom:announcements:write': { description: 'Write announcements.' } },
      services: [
        await printsEnvironment('reader', { environment: { COLOUR: 'green', HUB_EXTRA: 'yes' } }),
        await printsEnvironment('plain', { cwd: tmpdir() }),
        await printsEnvironment('privileged', { admin: true }),
        await printsEnvironment('text-command', {
          command: `"${process.execPath}" ${join(projectDirectory, 'fixtures/apps/prints-environment.cjs')}`,
        }),
        await printsEnvironment('own-token', { api_token: 'a-token-of-my-own' }),
        ...(isRoot
          ? [
              await printsEnvironment('other-user', {
                command: programs.app('prints-environment.cjs'),
                user: 'nobody',
                cwd: '/',
              }),
            ]
          : []),
        await managedService('whoami', 'examples/whoami/whoami.ts'),
        { name: 'no-pages', command: [process.execPath, '-e', 'setInterval(() => {}, 60_000)'] },
        {
          name: 'announcements',
          url: `http://127.0.0.1:${externalPort}`,
          api_token: 'announcements-token',
          oauth_client_allowed_scopes: ['custom:announcements:write'],
        },
      ],
    },
  });
  const names = [
    'reader',
    'plain',
    'privileged',
    'text-command',
    'own-token',
    'whoami',
    'no-pages',
  ];
  for (const name of names) await untilState(hub, name, 'ready');
  await hub.logIn('alice');
});

afterAll(async () => {
  await hub[Symbol.asyncDispose]();
  await programs[Symbol.asyncDispose]();
});

async function refusal(services: readonly unknown[]): Promise<string> {
  const outcome = createTestHub({ Hub: { services } });
  return outcome.then(
    async (started) => {
      await started[Symbol.asyncDispose]();
      return 'it started';
    },
    (error: Error) => error.message,
  );
}

describe('What the service does', () => {
  test('1: the hub is the OAuth 2 provider of its services, and says where', async () => {
    const answer = await fetch(`${hub.url}.well-known/oauth-authorization-server`);
    expect(await answer.json()).toMatchObject({
      authorization_endpoint: `${hub.url}hub/api/oauth2/authorize`,
      token_endpoint: `${hub.url}hub/api/oauth2/token`,
    });
    const browser = await hub.logIn('alice');
    const page = await openWithConsent(browser, `${hub.url}services/whoami/`);
    expect(page.body).toContain('Hello, alice');
  });

  test('5: a service with a command is managed, one without is external', async () => {
    expect(await serviceModel(hub, 'reader')).toMatchObject({ managed: true });
    expect((await serviceModel(hub, 'reader'))['pid']).toBeGreaterThan(1);
    expect(await serviceModel(hub, 'announcements')).toMatchObject({ managed: false, pid: null });
  });

  test('5: an external service is given its token by configuration, and calls the API with it', async () => {
    const answer = await hub.api('/user', 'announcements-token');
    expect(await answer.json()).toMatchObject({ kind: 'service', name: 'announcements' });
  });

  test('6: a service with a url is in the proxy table and reachable under /services/<name>/', async () => {
    const routes = await (await hub.api('/proxy', 'admin-service-token')).json();
    expect(JSON.stringify(routes)).toContain('/services/reader/');
    expect((await fetch(`${hub.url}services/reader/deep/path`)).status).toBe(200);
    expect((await fetch(`${hub.url}services/no-pages/`)).status).toBe(404);
  });

  test('7: hub authentication governs the pages and the API of a service', async () => {
    const page = await new FakeBrowser().request(`${hub.url}services/whoami/`);
    expect(page.status).toBe(302);
    expect(page.headers.location).toContain('/hub/api/oauth2/authorize?');
    const api = await fetch(`${hub.url}services/whoami/api`);
    expect(api.status).toBe(401);
    const allowed = await fetch(`${hub.url}services/whoami/api`, {
      headers: { authorization: 'token admin-service-token' },
    });
    expect(allowed.status).toBe(200);
  });
});

describe('Service', () => {
  test('name is required and must be usable in a URL', async () => {
    expect(await refusal([{ command: 'true' }])).toContain('Hub.services[1].name');
    expect(await refusal([{ name: 'a/b', command: 'true' }])).toContain('Hub.services[1].name');
    const twice = { name: 'a', command: 'true' };
    expect(await refusal([twice, twice])).toMatch(/Hub\.services\[2\].*a/s);
  });

  test('admin gives administrative privileges, and is off by default', async () => {
    const tokenOf = async (name: string) =>
      (await environmentOf(hub, name)).environment['HUB_API_TOKEN'];
    const create = async (name: string) =>
      (await hub.api(`/users/by-${name}`, await tokenOf(name), { method: 'POST' })).status;
    expect(await create('privileged')).toBe(201);
    expect(await create('plain')).toBe(403);
    expect(await serviceModel(hub, 'plain')).toMatchObject({ admin: false });
  });

  test('url of an external service is where the gateway forwards, and HUB_SERVICE_URL of a managed one', async () => {
    expect(await serviceModel(hub, 'announcements')).toMatchObject({
      url: `http://127.0.0.1:${externalPort}`,
      prefix: '/services/announcements/',
    });
    const { environment } = await environmentOf(hub, 'plain');
    expect(environment['HUB_SERVICE_URL']).toBe((await serviceModel(hub, 'plain'))['url']);
  });

  test('api_token is what the service calls the API with', async () => {
    const { environment } = await environmentOf(hub, 'own-token');
    expect(environment['HUB_API_TOKEN']).toBe('a-token-of-my-own');
    const answer = await hub.api('/user', 'a-token-of-my-own');
    expect(await answer.json()).toMatchObject({ kind: 'service', name: 'own-token' });
  });

  test('api_token must be unique per service', async () => {
    const services = ['a', 'b'].map((name) => ({ name, api_token: 'the-same-token' }));
    const message = await refusal(services);
    expect(message).toContain('Hub.services[2].api_token');
    expect(message).not.toContain('the-same-token');
  });

  test.each([
    ['12345678', true],
    ['123456789', false],
  ])('api_token must be longer than 8 characters: %s', async (api_token, isRefused) => {
    const message = await refusal([{ name: 'a', api_token }]);
    expect(message.includes('Hub.services[1].api_token')).toBe(isRefused);
  });

  test('api_token is needed by an external service that is to have one, and generated for a managed one', async () => {
    const { environment } = await environmentOf(hub, 'plain');
    expect(environment['HUB_API_TOKEN']).toMatch(/^\S{20,}$/);
  });

  test('command is a list of arguments or a text', async () => {
    expect((await environmentOf(hub, 'text-command')).environment['HUB_SERVICE_NAME']).toBe(
      'text-command',
    );
  });

  test('environment adds variables', async () => {
    const { environment } = await environmentOf(hub, 'reader');
    expect(environment).toMatchObject({ COLOUR: 'green', HUB_EXTRA: 'yes' });
  });

  test('user runs the service as that system user, and needs a hub that runs as root', async () => {
    if (isRoot) {
      await untilState(hub, 'other-user', 'ready');
      expect((await environmentOf(hub, 'other-user')).userId).not.toBe(0);
    } else {
      const message = await refusal([{ name: 'a', command: 'true', user: 'nobody' }]);
      expect(message).toContain('Hub.services[1].user');
    }
    const unknown = await refusal([{ name: 'a', command: 'true', user: 'nobody-of-this-name' }]);
    expect(unknown).toContain('Hub.services[1].user');
  });

  test('user is by default the system user of the hub', async () => {
    expect((await environmentOf(hub, 'plain')).userId).toBe(process.getuid?.());
  });

  test('cwd is the directory of the service, by default that of the hub', async () => {
    expect((await environmentOf(hub, 'plain')).cwd).toBe(await realpath(tmpdir()));
    expect((await environmentOf(hub, 'reader')).cwd).toBe(await realpath(hub.directory));
  });

  test.each(['environment', 'user', 'cwd'])(
    '%s applies to managed services only',
    async (field) => {
      const value = { environment: { A: 'b' }, user: 'root', cwd: '/' }[field];
      const message = await refusal([{ name: 'a', api_token: 'long-enough', [field]: value }]);
      expect(message).toContain(`Hub.services[1].${field}`);
    },
  );
});

describe('Role', () => {
  test('name and scopes: a managed service holds the scopes of the roles it is given, and no more', async () => {
    const token = (await environmentOf(hub, 'reader')).environment['HUB_API_TOKEN'];
    const users = (await (await hub.api('/users', token)).json()) as Record<string, unknown>[];
    expect(users.map(({ name }) => name)).toContain('alice');
    expect(users[0]).toHaveProperty('last_activity');
    expect(users[0]).not.toHaveProperty('groups');
    expect((await hub.api('/users/mallory', token, { method: 'POST' })).status).toBe(403);
    expect((await hub.api('/users/alice', token, { method: 'DELETE' })).status).toBe(403);
  });

  test('without a role a service may do nothing', async () => {
    const token = (await environmentOf(hub, 'plain')).environment['HUB_API_TOKEN'];
    expect((await hub.api('/users', token)).status).toBe(403);
    expect((await hub.api('/user', token)).status).toBe(200);
  });
});

describe('Environment variables passed to a Hub-Managed Service', () => {
  const rows: readonly [string, (of: TestHub) => Promise<string> | string][] = [
    ['HUB_SERVICE_NAME', () => 'plain'],
    ['HUB_API_URL', (of) => of.apiUrl],
    ['HUB_BASE_URL', (of) => of.url],
    ['HUB_SERVICE_PREFIX', () => '/services/plain/'],
    ['HUB_SERVICE_URL', async (of) => String((await serviceModel(of, 'plain'))['url'])],
  ];
  test.each(rows)('%s', async (name, expected) => {
    const { environment } = await environmentOf(hub, 'plain');
    expect(environment[name]).toBe(await expected(hub));
  });

  test('HUB_API_TOKEN is the token assigned to the service', async () => {
    const { environment } = await environmentOf(hub, 'plain');
    const answer = await hub.api('/user', environment['HUB_API_TOKEN']);
    expect(await answer.json()).toMatchObject({ kind: 'service', name: 'plain' });
  });

  test('HUB_API_URL answers, and HUB_BASE_URL ends in a slash', async () => {
    const { environment } = await environmentOf(hub, 'plain');
    expect((await fetch(`${environment['HUB_API_URL']}/`)).status).toBe(200);
    expect(environment['HUB_BASE_URL']?.endsWith('/')).toBe(true);
  });

  test('HUB_OAUTH_SCOPES is a JSON list of scopes that allow access to the service', async () => {
    const { environment } = await environmentOf(hub, 'plain');
    expect(JSON.parse(environment['HUB_OAUTH_SCOPES'] ?? '')).toContain(
      'access:services!service=plain',
    );
  });

  test('HUB_SERVICE_URL is for proxied web services only', async () => {
    const output = join(hub.directory, 'environment.json');
    const script = `require('node:fs').writeFileSync(${JSON.stringify(output)}, JSON.stringify(process.env)); setInterval(() => {}, 60_000)`;
    await using other = await createTestHub({
      Hub: { services: [{ name: 'job', command: [process.execPath, '-e', script] }] },
    });
    await untilState(other, 'job', 'ready');
    const environment = JSON.parse(await readFile(output, 'utf8')) as Record<string, string>;
    expect(environment).toHaveProperty('HUB_API_TOKEN');
    expect(environment).not.toHaveProperty('HUB_SERVICE_URL');
  });

  test("are all a service gets of the hub: no secret of the hub's own environment is passed on", async () => {
    const secret = 'a-secret-of-the-operator';
    await using other = await createTestHub(
      { Hub: { services: [await printsEnvironment('nosy')] } },
      { environment: { ...process.env, DATABASE_PASSWORD: secret } },
    );
    await untilState(other, 'nosy', 'ready');
    const reported = await environmentOf(other, 'nosy');
    expect(JSON.stringify(reported)).not.toContain(secret);
    expect(JSON.stringify(reported)).not.toContain('c0ffee42d15ea5e5');
  });
});

describe('States and transitions', () => {
  test('Hub-Managed Service process: the hub starts it, and starts it again whenever it stops', async () => {
    const before = await environmentOf(hub, 'plain');
    process.kill(before.pid, 'SIGKILL');
    await until(async () => {
      const { pid, ready } = await serviceModel(hub, 'plain');
      return ready === true && pid !== before.pid;
    }, 'the service runs again');
    expect((await environmentOf(hub, 'plain')).pid).not.toBe(before.pid);
    expect((await serviceModel(hub, 'plain'))['restarts']).toBe(1);
  });

  test('Hub-Managed Service process: one that ends without an error is started again too', async () => {
    await using other = await createTestHub({
      Hub: { services: [{ name: 'ends', command: [process.execPath, '-e', '0'] }] },
    });
    await until(
      async () => Number((await serviceModel(other, 'ends'))['restarts']) >= 2,
      'the service was started again',
    );
    expect(await serviceModel(other, 'ends')).toMatchObject({ last_exit: { code: 0 } });
  });
});

describe('Endpoints', () => {
  test('any /services/<service_name>/... is forwarded with method, prefix and query kept', async () => {
    await using other = await createTestHub({
      Hub: {
        services: [
          await managedService('app', 'fixtures/apps/gateway-app.cjs', { access: 'public' }),
        ],
      },
    });
    await untilState(other, 'app', 'ready');
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const answer = await fetch(`${other.url}services/app/foo/bar?a=1&a=2`, { method });
      expect(await answer.json()).toMatchObject({ method, url: '/services/app/foo/bar?a=1&a=2' });
    }
    const noSlash = await fetch(`${other.url}services/app`, { redirect: 'manual' });
    expect(noSlash.headers.get('location')).toBe('/services/app/');
  });
});
