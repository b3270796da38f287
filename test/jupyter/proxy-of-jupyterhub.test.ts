import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { pathOf, requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const canRun = requires('jupyterhub', 'jupyterhub-singleuser');

const token = 'token-of-the-jupyterhub';
const adminToken = 'token-of-a-jupyterhub-service';

function documented(language: string): string {
  const page = join(projectDirectory, 'docs/how-to/use-as-jupyterhubs-proxy.md');
  const [, text = ''] =
    new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'ms').exec(readFileSync(page, 'utf8')) ?? [];
  return text;
}

describe.runIf(canRun)('a JupyterHub of Debian, with the hub as its proxy', () => {
  const stack = new AsyncDisposableStack();
  let hub: TestHub;
  let url: string;
  let output = '';

  beforeAll(async () => {
    const [apiPort, jupyterHubPort] = [await freePort(), await freePort()];
    const { Hub } = JSON.parse(documented('jsonc').replace(/^\/\/.*$/m, '')) as {
      Hub: { proxy_api: object };
    };
    hub = stack.use(
      await createTestHub(
        {
          Hub: {
            proxy_api: {
              ...Hub.proxy_api,
              bind_url: `http://127.0.0.1:${apiPort}`,
              host: 'jupyter.localhost',
            },
          },
        },
        { environment: { ...process.env, CONFIGPROXY_AUTH_TOKEN: token } },
      ),
    );
    url = `http://jupyter.localhost:${new URL(hub.url).port}/`;
    const directory = join(hub.directory, 'jupyterhub');
    mkdirSync(directory);
    const config = documented('python')
      .replace('8001', String(apiPort))
      .replace('8081', String(jupyterHubPort))
      .replace('the same token, of 16 characters or more', token);
    writeFileSync(
      join(directory, 'jupyterhub_config.py'),
      `${config}
c.JupyterHub.hub_ip = "127.0.0.1"
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = ${JSON.stringify(`${directory}/{username}`)}
c.Spawner.cmd = ["${pathOf('jupyterhub-singleuser')}"]
c.Spawner.args = ["--allow-root"]
c.Spawner.start_timeout = 110
c.Spawner.http_timeout = 110
c.JupyterHub.last_activity_interval = 1
c.JupyterHub.services = [{"name": "test", "api_token": "${adminToken}", "admin": True}]
`,
    );
    const child = spawn(pathOf('jupyterhub'), ['-f', 'jupyterhub_config.py'], {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-20_000);
      });
    }
    stack.defer(async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    });
    await until(() => {
      if (child.exitCode !== null) throw new Error(`jupyterhub ended: ${output}`);
      return output.includes('JupyterHub is now running');
    }, 'the JupyterHub runs');
  });
  afterAll(() => stack.disposeAsync());

  /** The API of the JupyterHub, at the address of the hub. */
  function api(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { authorization: `token ${adminToken}`, host: new URL(url).host };
    return fetchAt(`${hub.url}hub/api${path}`, { ...init, headers });
  }

  /** As fetch, but the Host header is sent as given. */
  async function fetchAt(address: string, init: RequestInit): Promise<Response> {
    const { request } = await import('node:http');
    const { text } = await import('node:stream/consumers');
    const sent = request(address, {
      method: init.method ?? 'GET',
      headers: init.headers as Record<string, string>,
    });
    sent.end(init.body as string | undefined);
    const [answer] = await once(sent, 'response');
    const body = await text(answer);
    return new Response(body === '' ? null : body, { status: answer.statusCode });
  }

  test('logs in, starts a server, shows its page and WebSocket, and sees when it was used', async () => {
    const browser = new FakeBrowser();
    const login = await browser.open(url);
    expect(login.url).toMatch(new RegExp(`^${url}hub/login`));
    const answer = await browser.request(`${url}hub/login?next=%2Fhub%2Fhome`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'username=ada&password=anything',
    });
    expect([answer.status, answer.headers.location]).toEqual([302, '/hub/home']);

    expect([201, 202]).toContain((await api('/users/ada/server', { method: 'POST' })).status);
    const serverOf = async () => {
      const model = (await (await api('/users/ada')).json()) as {
        servers: Record<string, { ready: boolean; last_activity: string }>;
      };
      return model.servers[''];
    };
    await until(async () => (await serverOf())?.ready === true, 'the server is ready');
    const page = await browser.open(`${url}user/ada/tree`);
    expect([page.status, page.url]).toEqual([200, `${url}user/ada/tree`]);
    expect(page.body).toContain('data-base-url="/user/ada/"');

    const given = (await (
      await api('/users/ada/tokens', { method: 'POST', body: '{}' })
    ).json()) as { token: string };
    const own = { authorization: `token ${given.token}`, host: new URL(url).host };
    const server = `${hub.url}user/ada/`;
    const kernel = (await (
      await fetchAt(`${server}api/kernels`, { method: 'POST', headers: own })
    ).json()) as { id: string };
    const socket = new WebSocket(
      `${server.replace('http', 'ws')}api/kernels/${kernel.id}/channels`,
      { headers: own },
    );
    await once(socket, 'open');

    const before = new Date((await serverOf())?.last_activity ?? '');
    await until(async () => {
      await fetchAt(`${server}api/status`, { headers: own });
      return new Date((await serverOf())?.last_activity ?? '') > before;
    }, 'the JupyterHub sees the activity');

    const closed = once(socket, 'close');
    expect([202, 204]).toContain((await api('/users/ada/server', { method: 'DELETE' })).status);
    await closed;
    // Its own hub answers there again, and never this one.
    await until(async () => {
      const { status, body } = await browser.open(`${url}user/ada/tree`);
      return status === 503 || status === 424 || body.includes('not running');
    }, 'the route is gone');
    expect((await fetchAt(`${hub.url}hub/health`, { headers: {} })).status).toBe(200);
  });

  test('gives its routes again to a hub that has started again', async () => {
    hub = stack.use(await hub.restart());
    await until(
      async () => (await new FakeBrowser().open(url)).url.startsWith(`${url}hub/login`),
      'the JupyterHub is there again',
    );
  });
});
