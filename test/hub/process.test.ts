import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defaultArgon2Cost } from '../../src/identity/authentication/password-hash.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { createHubFolder, type HubFolder, type HubProcess } from '../support/hub-process.ts';
import { managedService, usersOpenServices } from '../support/services.ts';
import {
  createTestHub,
  submitForm,
  submitLogin,
  type TestHub,
  until,
} from '../support/test-hub.ts';

/** A web server whose answers under /held/ wait until they are let go. */
async function startUpstream() {
  const held: ServerResponse[] = [];
  const server = createServer((incoming, response) => {
    if (!incoming.url?.includes('/held')) {
      response.end('quick');
      return;
    }
    response.write('begun ');
    held.push(response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    held,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function begin(url: string, agent?: Agent): Promise<IncomingMessage> {
  const outgoing = request(url, { agent }).end();
  const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
  return response;
}

function api(folder: HubFolder, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(folder.apiUrl + path, {
    ...init,
    headers: { authorization: 'token admin-service-token', 'content-type': 'application/json' },
  });
}

async function untilReady(folder: HubFolder, name: string): Promise<Record<string, unknown>> {
  let model: Record<string, unknown> = {};
  await until(async () => {
    model = (await (await api(folder, `/services/${name}`)).json()) as Record<string, unknown>;
    return model['ready'] === true;
  }, `the service ${name} is ready`);
  return model;
}

/** A process that has ended but was not collected by its parent yet counts as ended. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

async function setUpLinkOf(hub: HubProcess): Promise<string> {
  const found = () => /http:\S+set-up\S+(?=\s)/.exec(hub.stdout())?.[0];
  await until(() => found() !== undefined, 'the hub prints the link for the first administrator');
  return found() ?? '';
}

describe('the first start', () => {
  test('prints a link that makes the first administrator once; an unused one ends with the next start, a used one is the last', async () => {
    await using folder = await createHubFolder({
      Hub: { authenticator_class: 'password' },
      Authenticator: {},
    });
    const unused = await folder.start();
    const former = await setUpLinkOf(unused);
    unused.signal('SIGTERM');
    await unused.exited;
    const first = await folder.start();
    const link = await setUpLinkOf(first);
    expect(link).toContain(folder.url);
    expect((await new FakeBrowser().open(former)).status).toBe(403);

    const browser = new FakeBrowser();
    const password = 'a long enough password';
    const page = await browser.open(link);
    expect(page.status).toBe(200);
    const done = await submitForm(browser, page, {
      name: 'root-ada',
      new_password: password,
      repeat_password: password,
    });
    expect(done.status).toBe(303);
    // No page asks again for what was just typed.
    const home = await browser.open(new URL(done.headers.location ?? '', folder.url).href);
    expect([home.status, home.url]).toEqual([200, `${folder.url}hub/home`]);
    expect(home.body).toContain('Next steps');

    const late = await new FakeBrowser().open(link);
    expect(late.status).toBe(403);
    const logIn = await submitLogin(new FakeBrowser(), folder.url, 'root-ada', password);
    expect(logIn.status).toBe(302);
    expect(first.stderr()).not.toContain(new URL(link).searchParams.get('secret'));

    first.signal('SIGTERM');
    expect(await first.exited).toBe(0);
    using database = new DatabaseSync(join(folder.directory, 'hub.sqlite'), { readOnly: true });
    const row = database.prepare('select password_hash from password_credentials').get();
    const { memoryKib, passes, parallelism } = defaultArgon2Cost;
    expect(row?.['password_hash']).toContain(`$m=${memoryKib},t=${passes},p=${parallelism}$`);
    const second = await folder.start();
    second.signal('SIGTERM');
    await second.exited;
    expect(second.stdout()).toContain('The hub is ready at');
    expect(second.stdout()).not.toContain('set-up');
  });
});

describe('exit codes', () => {
  test('are 2 for a wrong configuration, with every problem and its path', async () => {
    await using folder = await createHubFolder({
      Hub: { services: [{ name: 'a b' }, { name: 'x', api_token: 'short' }], colour: 'red' },
    });
    const { code, stderr, stdout } = await folder.command(['start']);
    expect(code).toBe(2);
    expect(stderr).toContain('Hub.colour');
    expect(stderr).toContain('Hub.services[1].name');
    expect(stderr).toContain('Hub.services[2].api_token');
    expect(stderr).not.toContain('short');
    expect(stdout).toBe('');
  });

  test('are 2 for a file that is not there or no JSON', async () => {
    await using folder = await createHubFolder();
    await writeFile(folder.configFile, '{ "Hub": ');
    expect((await folder.command(['start'])).code).toBe(2);
    const nowhere = join(folder.directory, 'nowhere.json');
    expect((await folder.command(['start', '--config', nowhere])).code).toBe(2);
  });

  test.each(['bind_url', 'hub_bind_url'])(
    'are 1 when the port of %s is taken, and the message says so',
    async (setting) => {
      await using upstream = await startUpstream();
      await using folder = await createHubFolder({ Hub: { [setting]: upstream.url } });
      const { code, stderr } = await folder.run(['start']);
      expect(code).toBe(1);
      expect(stderr).toContain(`Hub.${setting}`);
      expect(stderr).toMatch(/something else listens there already/);
      expect(stderr).not.toMatch(/^\s+at /m);
    },
  );

  test('are 1 for a database of a newer hub, and nothing in it changes', async () => {
    await using folder = await createHubFolder();
    await folder.command(['user', 'list']);
    const file = join(folder.directory, 'hub.sqlite');
    using database = new DatabaseSync(file);
    database.exec('update hub_schema set version = 999');
    const { code, stderr } = await folder.run(['start']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/version 999.*start the newer hub or restore a backup/s);
    expect(database.prepare('select version from hub_schema').get()).toEqual({ version: 999 });
  });

  test('are 1 for a database that is no database', async () => {
    await using folder = await createHubFolder();
    await writeFile(
      join(folder.directory, 'hub.sqlite'),
      'this is a text, long enough to be read '.repeat(40),
    );
    const { code, stderr } = await folder.run(['start']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/damaged or not an SQLite database/);
  });

  test('are 1 for a database whose folder does not exist', async () => {
    await using folder = await createHubFolder({
      Hub: { database_url: 'sqlite:nowhere/hub.sqlite' },
    });
    const { code, stderr } = await folder.run(['start']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/does not exist/);
  });
});

describe('a hub that is told to stop', () => {
  test('lets requests in flight finish, takes no new ones, ends its services and exits with 0', async () => {
    await using upstream = await startUpstream();
    await using folder = await createHubFolder({
      Hub: {
        // A stop that waits for an unused connection would take this long, and fail the test.
        shutdown_timeout: 600,
        services: [
          { name: 'slow', url: upstream.url, access: 'public' },
          await managedService('app', 'fixtures/apps/prints-environment.cjs', { access: 'public' }),
        ],
      },
    });
    const hub = await folder.start();
    await untilReady(folder, 'slow');
    const { pid } = await untilReady(folder, 'app');
    // A client that keeps its connection, unused, for longer than the hub waits for it.
    const agent = new Agent({ keepAlive: true, timeout: 120_000 });
    const inFlight = await begin(`${folder.url}services/slow/held`, agent);
    hub.signal('SIGTERM');
    await until(() => hub.logged(/hub stopping/).length > 0, 'hub stopping');
    await until(
      () =>
        fetch(`${folder.url}hub/health`).then(
          () => false,
          () => true,
        ),
      'no new connection is taken',
    );
    upstream.held[0]?.end('and ended');
    expect(await text(inFlight)).toBe('begun and ended');
    expect(await hub.exited).toBe(0);
    expect(isAlive(Number(pid))).toBe(false);
  });

  test('cuts what does not end within Hub.shutdown_timeout', async () => {
    await using upstream = await startUpstream();
    await using folder = await createHubFolder({
      Hub: {
        shutdown_timeout: 1,
        services: [{ name: 'slow', url: upstream.url, access: 'public' }],
      },
    });
    const hub = await folder.start();
    await untilReady(folder, 'slow');
    const inFlight = await begin(`${folder.url}services/slow/held`);
    hub.signal('SIGTERM');
    await expect(text(inFlight)).rejects.toThrow();
    expect(await hub.exited).toBe(0);
  });
});

describe('SIGHUP', () => {
  let upstream: Awaited<ReturnType<typeof startUpstream>>;
  let folder: HubFolder;
  let hub: HubProcess;
  const serviceAt = (name: string) => ({ name, url: upstream.url, access: 'public' });
  beforeAll(async () => {
    upstream = await startUpstream();
    folder = await createHubFolder({ Hub: { services: [serviceAt('kept')] } });
    hub = await folder.start();
    await untilReady(folder, 'kept');
  });
  afterAll(async () => {
    await folder[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
  });

  test('takes over services and roles without dropping an open connection, and logs the difference', async () => {
    const inFlight = await begin(`${folder.url}services/kept/held`);
    const added = await managedService('added', 'fixtures/apps/prints-environment.cjs', {
      access: 'public',
    });
    await folder.configure({
      Hub: {
        services: [serviceAt('kept'), added],
        load_roles: [{ name: 'reader', scopes: ['list:users'] }],
      },
    });
    hub.signal('SIGHUP');
    await until(
      () => hub.logged(/new configuration applied/).length > 0,
      'new configuration applied',
    );
    await untilReady(folder, 'added');
    expect((await fetch(`${folder.url}services/added/`)).status).toBe(200);
    expect(hub.logged(/new configuration applied/)[0]).toMatchObject({
      services: { added: ['added'] },
    });

    upstream.held[0]?.end('and ended');
    expect(await text(inFlight)).toBe('begun and ended');
  });

  test('is waited for by `hub reload`, which checks the file and says what changed', async () => {
    await folder.configure({ Hub: { services: [serviceAt('kept'), serviceAt('former')] } });
    await folder.command(['reload']);
    const nothing = await folder.command(['reload']);
    expect(nothing).toMatchObject({ code: 0 });
    expect(nothing.stdout).toMatch(
      /The hub \(process \d+\) has reloaded\.\nNothing has changed\.\n$/,
    );

    await folder.configure({
      Hub: {
        title: 'Physics',
        services: [serviceAt('kept'), serviceAt('wiki')],
        load_groups: [{ name: 'staff', users: ['bob'] }],
        load_roles: [{ name: 'ops', scopes: ['read:hub'], groups: ['staff'] }],
      },
      Proxy: { api_body_size: 2_000_000 },
    });
    const changed = await folder.command(['reload']);
    // Known at once: the reload was waited for. Whether the service is ready is asked from then on.
    expect((await fetch(`${folder.url}services/wiki/`)).status).not.toBe(404);
    await untilReady(folder, 'wiki');
    expect(await (await fetch(`${folder.url}services/wiki/`)).text()).toBe('quick');
    expect(changed.stdout.split('\n').slice(1)).toEqual([
      'In force now: Hub.load_roles, Hub.load_groups, Hub.title, Hub.services',
      'Roles given: ops to group staff (bob)',
      'Members added to groups: staff (bob)',
      'Services added: wiki',
      'Services removed: former',
      'Needs a restart of the hub: Proxy.api_body_size',
      '',
    ]);

    await folder.configure({ Hub: { services: [{ name: '?' }] } });
    expect(await folder.command(['reload'])).toMatchObject({ code: 2 });
    expect(hub.logged(/was not reloaded/)).toEqual([]);
  });

  test('that the hub refuses fails `hub reload`, with the reason', async () => {
    await folder.configure({
      Hub: { services: [{ name: 'robot', api_token: { env: 'ONLY_IN_THE_SHELL' } }] },
    });
    const { code, stderr } = await folder.command(['reload'], '', {
      ONLY_IN_THE_SHELL: 'a-secret-that-the-hub-does-not-have',
    });
    expect(code).toBe(1);
    expect(stderr).toContain('The hub keeps its former configuration');
    expect(stderr).toContain('ONLY_IN_THE_SHELL');
    expect(stderr).not.toContain('a-secret');
  });

  test('with a wrong file leaves the old one in force, and says what is wrong', async () => {
    await folder.configure({ Hub: { services: [{ name: 'not usable/in a URL' }] } });
    const refused = () =>
      JSON.stringify(hub.logged(/was not reloaded; the former one stays in force/));
    expect(refused()).not.toContain('Hub.services[1].name');
    hub.signal('SIGHUP');
    await until(() => refused().includes('Hub.services[1].name'), 'the wrong file is refused');
    expect(await (await fetch(`${folder.url}services/kept/`)).text()).toBe('quick');
  });
});

test('a hub that is killed has kept everything it answered 2xx for, and the next start ends the service left behind', async () => {
  await using folder = await createHubFolder({
    Hub: {
      load_roles: usersOpenServices,
      services: [
        await managedService('app', 'fixtures/apps/prints-environment.cjs', { access: 'public' }),
      ],
    },
  });
  const names = ['alice'];
  const browser = new FakeBrowser();
  const startAndAddUsers = async () => {
    const hub = await folder.start();
    for (let number = 0; number < 5; number += 1) {
      const name = `user-${names.length}`;
      expect((await api(folder, `/users/${name}`, { method: 'POST' })).status).toBe(201);
      names.push(name);
    }
    return { hub, servicePid: Number((await untilReady(folder, 'app'))['pid']) };
  };
  const kill = async (hub: HubProcess) => {
    hub.signal('SIGKILL');
    await hub.exited;
  };

  const first = await startAndAddUsers();
  expect((await submitLogin(browser, folder.url, 'alice', 'test')).status).toBe(302);
  await kill(first.hub);
  expect(isAlive(first.servicePid)).toBe(true);

  const second = await startAndAddUsers();
  expect(second.servicePid).not.toBe(first.servicePid);
  expect(isAlive(first.servicePid)).toBe(false);
  // Its port was not taken.
  const answer = (await (await fetch(`${folder.url}services/app/`)).json()) as { pid: number };
  expect(answer.pid).toBe(second.servicePid);
  expect(second.hub.logged(/processes of former hub ended/)).toMatchObject([{ service: 'app' }]);
  await kill(second.hub);

  await folder.start();
  const users = (await (await api(folder, '/users')).json()) as { name: string }[];
  expect(users.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  expect((await browser.request(`${folder.url}hub/home`)).status).toBe(200);
});

describe('the cookie keys', () => {
  const [old, fresh] = [
    '5f1c09d2a7e84b36905f1e2dcb7a48630b9d4e7f21a65c8833f0d7e4b1926ac5',
    'a81e3c7d50f2964b8e1d0a7c39f5b26487d1e03fbc5a9264710ed8f3b6c24a97',
  ] as const;

  async function withKeys(cookie_secret: unknown, directory: string) {
    return createTestHub({ Hub: { cookie_secret } }, { directory });
  }

  test('are changed without logging any user out when the old one stays in the list', async () => {
    await using folder = await createHubFolder();
    const { directory } = folder;
    const before = await withKeys(old, directory);
    const early = await before.logIn('early');
    await before[Symbol.asyncDispose]();

    const between = await withKeys([fresh, old], directory);
    expect((await early.request(`${between.url}hub/home`)).status).toBe(200);
    const late = await between.logIn('late');
    await between[Symbol.asyncDispose]();

    await using after = await withKeys(fresh, directory);
    expect((await late.request(`${after.url}hub/home`)).status).toBe(200);
  });

  test('lost with the cookie secret: said clearly at start, with what to do', async () => {
    await using folder = await createHubFolder();
    const { directory } = folder;
    const idsOfKeys = async ({ apiUrl }: TestHub) => {
      const { keys } = (await (await fetch(`${apiUrl}/oauth2/jwks`)).json()) as {
        keys: { kid: string }[];
      };
      return keys.map(({ kid }) => kid);
    };
    const reportedBy = ({ logLines }: TestHub) =>
      logLines.filter(({ msg }) => /sealed with another cookie secret/.test(String(msg)));
    const before = await withKeys(old, directory);
    const first = await idsOfKeys(before);
    expect(reportedBy(before)).toEqual([]);
    await before[Symbol.asyncDispose]();

    const without = await withKeys(fresh, directory);
    const [reported] = reportedBy(without);
    expect(reported?.['msg']).toContain(
      'put the former key behind the new one in Hub.cookie_secret and restart the hub',
    );
    expect(reported?.['keys']).toEqual(expect.arrayContaining(first));
    expect((await idsOfKeys(without)).filter((id) => first.includes(id))).toEqual([]);
    await without[Symbol.asyncDispose]();

    // What it says helps.
    await using again = await withKeys([fresh, old], directory);
    expect(reportedBy(again)).toEqual([]);
    expect(await idsOfKeys(again)).toEqual(expect.arrayContaining(first));
  });

  test('log all users out when the key is another one', async () => {
    await using folder = await createHubFolder();
    const { directory } = folder;
    const before = await withKeys(old, directory);
    const browser = await before.logIn('early');
    await before[Symbol.asyncDispose]();
    await using after = await withKeys(fresh, directory);
    const answer = await browser.request(`${after.url}hub/home`);
    expect(answer.status).toBe(302);
    expect(answer.headers.location).toContain('/hub/login');
  });
});
