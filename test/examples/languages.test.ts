import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { pathOf, requires } from '../support/requires.ts';
import { adminToken, createServerHub, createUsers } from '../support/server-hub.ts';
import { untilState } from '../support/services.ts';

const folder = join(import.meta.dirname, '..', '..', 'examples', 'languages');
const script = (name: string) => join(folder, name);

/** Where compilers keep what they make. */
let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'languages-'));
});
afterAll(async () => rm(home, { recursive: true, force: true }));

test.for([
  ['flask', () => [pathOf('flask'), script('flask_app.py')]],
  ['fastapi', () => [pathOf('fastapi'), script('fastapi_app.py')]],
  ['django', () => [pathOf('django'), script('django_app.py')]],
  ['go', () => [pathOf('go'), 'run', script('app.go')]],
  ['shiny', () => [pathOf('shiny'), script('shiny/app.R')]],
] as const)(
  'an app of %s greets who comes through the hub',
  async ([program, command], context) => {
    context.skip(!requires(program));
    const url = `http://127.0.0.1:${await freePort()}`;
    await using hub = await createServerHub({
      Hub: {
        services: [
          {
            name: 'greeter',
            url,
            command: command(),
            access: 'gateway',
            strip_prefix: true,
            environment: { HOME: home, PATH: '/usr/bin:/bin', PYTHONDONTWRITEBYTECODE: '1' },
          },
        ],
        load_roles: [{ name: 'user', scopes: ['self', 'access:services!service=greeter'] }],
        load_groups: [{ name: 'Größe', users: ['ada'] }],
      },
    });
    await untilState(hub, 'greeter', 'ready');
    const ada = await hub.logIn('ada');
    const page = await ada.open(`${hub.url}services/greeter/`);
    expect(page.body).toContain('Hello, ada. Groups: Größe');
    expect((await fetch(url)).status).toBe(403);
  },
);

test.skipIf(!requires('python3'))(
  'the client in Python starts servers, and reads lists and refusals',
  async () => {
    await using hub = await createServerHub();
    const names = Array.from({ length: 120 }, (_, index) => `user-${index}`);
    await createUsers(hub, 'ann é', ...names);
    const program = `
import json
from hub_client import Hub, HubError
hub = Hub(${JSON.stringify(hub.url)}, ${JSON.stringify(adminToken)})
users = [user["name"] for user in hub.each("/users", limit=50)]
started = hub.start_server("ann é")
hub.stop_server("ann é")
stopped = hub.call("GET", "/users/ann%20%C3%A9")["server"]
try:
    hub.call("GET", "/users/nobody")
except HubError as error:
    refusal = [error.status, error.code, str(error)]
print(json.dumps([len(set(users)), started["ready"], stopped, refusal, hub.whoami()["name"]]))
`;
    const child = spawn(pathOf('python3'), ['-c', program], {
      env: { PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' },
    });
    const [said, complained] = await Promise.all([text(child.stdout), text(child.stderr)]);
    expect(complained).toBe('');
    expect(JSON.parse(said)).toEqual([
      121,
      true,
      null,
      [404, 'not_found', 'There is no such user.'],
      'admin-service',
    ]);
  },
);
