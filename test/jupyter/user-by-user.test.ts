import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { createHubFolder } from '../support/hub-process.ts';
import { pathOf, requires } from '../support/requires.ts';
import { fixtureApp } from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const adminToken = 'token-of-a-jupyterhub-service';
const page = readFileSync(join(projectDirectory, 'docs/how-to/from-jupyterhub.md'), 'utf8');

function documented(language: string): string {
  const [, section = ''] = page.split('\n## User by user\n');
  const [, block = ''] =
    new RegExp(`^ +\`\`\`${language}\\n(.*?)^ +\`\`\`$`, 'ms').exec(section) ?? [];
  return block.replaceAll(/^ {3}/gm, '');
}

/** Any web server, where JupyterHub expects the one of a user. */
const oldServer = `
import http.server, os, urllib.parse
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"old")
http.server.ThreadingHTTPServer(
    ("127.0.0.1", urllib.parse.urlparse(os.environ["JUPYTERHUB_SERVICE_URL"]).port), Handler
).serve_forever()
`;

describe.runIf(requires('jupyterhub', 'python3-jupyterhub'))('a JupyterHub beside the hub', () => {
  test('loses its users one by one, while nobody else notices', async () => {
    await using stack = new AsyncDisposableStack();
    const python = pathOf('python3-jupyterhub');
    const [apiPort, oldPort] = [await freePort(), await freePort()];
    const { Hub } = JSON.parse(documented('jsonc').replace(/^\/\/.*$/m, '')) as { Hub: object };
    const host = 'jupyter.localhost';
    const proxy_api = { bind_url: `http://127.0.0.1:${apiPort}`, auth_token: 'a'.repeat(20), host };
    const folder = stack.use(
      await createHubFolder({
        Hub: {
          ...Hub,
          proxy_api,
          services: [{ name: 'test', api_token: adminToken, admin: true }],
        },
        Spawner: { cmd: fixtureApp('web-server'), access: 'gateway' },
      }),
    );
    const at = (name: string) => join(folder.directory, name);
    const database = `sqlite:///${at('old.sqlite')}`;
    const fixture = join(projectDirectory, 'fixtures/jupyter/old_hub.py');
    const made = await promisify(execFile)(python, [fixture, database]);
    const { ada } = JSON.parse(made.stdout) as { ada: string };
    const rows = new DatabaseSync(at('old.sqlite'));
    // Administrators may start servers whatever groups they are in.
    rows.exec(`update users set admin = 0;
      delete from user_role_map where role_id = (select id from roles where name = 'admin')`);
    rows.close();
    const imported = await folder.command(['import', 'jupyterhub', '--database', database]);
    expect(imported.stderr).toBe('');
    const hub = await folder.start();
    stack.use(hub);

    writeFileSync(at('moved-users'), '');
    writeFileSync(
      at('jupyterhub_config.py'),
      `${documented('python').replace('/srv/jupyterhub/moved-users', at('moved-users'))}
c.JupyterHub.db_url = "${database}"
c.JupyterHub.hub_port = ${oldPort}
c.JupyterHub.hub_ip = "127.0.0.1"
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:${apiPort}"
c.ConfigurableHTTPProxy.auth_token = "${proxy_api.auth_token}"
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = ${JSON.stringify(at('{username}'))}
c.Spawner.cmd = ["${python}", "-c", ${JSON.stringify(oldServer)}]
c.JupyterHub.services = [{"name": "test", "api_token": "${adminToken}", "admin": True}]
`,
    );
    const old = spawn(pathOf('jupyterhub'), ['-f', 'jupyterhub_config.py'], {
      cwd: folder.directory,
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let output = '';
    old.stderr.setEncoding('utf8').on('data', (part: string) => {
      output = (output + part).slice(-20_000);
    });
    stack.defer(async () => {
      if (old.exitCode === null && old.kill('SIGTERM')) await once(old, 'exit');
    });
    await until(() => {
      if (old.exitCode !== null) throw new Error(`jupyterhub ended: ${output}`);
      return output.includes('JupyterHub is now running');
    }, 'the JupyterHub runs');

    /** A request to the old host name, or to the hub's own. */
    async function ask(where: 'old' | 'new', path: string, token = adminToken, method = 'GET') {
      const { port, host: own } = new URL(folder.url);
      const headers = {
        authorization: `token ${token}`,
        host: where === 'old' ? `${host}:${port}` : own,
      };
      const sent = request(new URL(path, folder.url), { method, headers });
      sent.end();
      const [answer] = await once(sent, 'response');
      return { status: answer.statusCode as number, body: await text(answer) };
    }
    const start = (where: 'old' | 'new', user: string) =>
      ask(where, `/hub/api/users/${user}/server`, adminToken, 'POST');
    const isReady = async (where: 'old' | 'new', user: string) => {
      const { body } = await ask(where, `/hub/api/users/${user}`);
      return (JSON.parse(body).servers?.['']?.ready as boolean | undefined) === true;
    };
    expect((await ask('old', '/hub/api/users/dora', adminToken, 'POST')).status).toBe(201);
    for (const user of ['ada', 'dora']) {
      expect([201, 202]).toContain((await start('old', user)).status);
      await until(() => isReady('old', user), `the server of ${user} is ready`);
    }
    expect(
      (await ask('new', '/hub/api/users/ada/server', ada, 'POST')).status,
      'not moved yet',
    ).toBe(403);

    const failures: string[] = [];
    let [asked, isOver] = [0, false];
    const load = (async () => {
      while (!isOver) {
        for (const [where, path, token] of [
          ['old', '/user/dora/', adminToken],
          ['old', '/hub/api/users/dora', adminToken],
          ['old', '/hub/api/user', ada],
          ['new', '/hub/api/user', ada],
          ['new', '/hub/login', ''],
        ] as const) {
          const { status } = await ask(where, path, token).catch(() => ({ status: 0 }));
          if (status !== 200) failures.push(`${where} ${path}: ${status}`);
          asked += 1;
        }
      }
    })();

    writeFileSync(at('moved-users'), 'ada\n');
    const ended = await ask('old', '/hub/api/users/ada/server', adminToken, 'DELETE');
    expect([202, 204]).toContain(ended.status);
    const moved = await folder.command(['group', 'add', 'moved', 'ada']);
    expect(moved.stderr).toBe('');
    await until(async () => !(await isReady('old', 'ada')), 'the old server has ended');
    expect([201, 202]).toContain(
      (await ask('new', '/hub/api/users/ada/server', ada, 'POST')).status,
    );
    await until(() => isReady('new', 'ada'), 'the new server is ready');
    expect((await start('old', 'ada')).status, 'sent away').toBeGreaterThanOrEqual(400);

    // And back.
    writeFileSync(at('moved-users'), '');
    const stopped = await ask('new', '/hub/api/users/ada/server', adminToken, 'DELETE');
    expect([202, 204]).toContain(stopped.status);
    expect((await folder.command(['group', 'remove', 'moved', 'ada'])).stderr).toBe('');
    expect([201, 202]).toContain((await start('old', 'ada')).status);
    await until(() => isReady('old', 'ada'), 'the old server is back');
    isOver = true;
    await load;
    expect(failures).toEqual([]);
    expect(asked).toBeGreaterThan(0);
  });
});
