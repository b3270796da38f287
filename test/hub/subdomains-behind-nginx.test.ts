import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { freePort } from '../support/free-port.ts';
import { pathOf, requires } from '../support/requires.ts';
import { projectDirectory, usersOpenServices } from '../support/services.ts';
import { originBelow } from '../support/subdomain-hub.ts';
import { createTestHub, until } from '../support/test-hub.ts';
import { selfSigned } from '../support/tls-front.ts';

/** The configurations that the page tells its reader to write. */
function blocksOf(language: string): string[] {
  const page = readFileSync(join(projectDirectory, 'docs/how-to/run-behind-tls.md'), 'utf8');
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, name, text = '']) =>
    name === language ? [text] : [],
  );
}

describe.runIf(requires('nginx', 'openssl'))('behind nginx as the documentation sets it up', () => {
  test('a user opens a service on its own host', async () => {
    await using stack = new AsyncDisposableStack();
    const directory = mkdtempSync(join(tmpdir(), 'hub-nginx-'));
    stack.defer(() => rmSync(directory, { recursive: true, force: true }));
    const [port, hubPort] = [await freePort(), await freePort()];
    const { key, cert } = selfSigned(['hub.localhost', '*.hub.localhost']);
    writeFileSync(join(directory, 'hub.key'), key);
    writeFileSync(join(directory, 'hub.pem'), cert);
    const [server = ''] = blocksOf('nginx');
    const here = server
      .replaceAll('hub.example.org.', 'CERTIFICATE.')
      .replaceAll('hub.example.org', 'hub.localhost')
      .replaceAll('/etc/ssl/CERTIFICATE', `${directory}/hub`)
      .replace('listen 443', `listen 127.0.0.1:${port}`)
      .replace('127.0.0.1:8000', `127.0.0.1:${hubPort}`);
    const folders = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    const file = join(directory, 'nginx.conf');
    writeFileSync(
      file,
      `daemon off; master_process off; pid ${directory}/pid; error_log ${directory}/error.log;
      events {} http { access_log off;
      ${folders.map((name) => `${name}_temp_path ${directory}/${name};`).join(' ')}
      ${here} }`,
    );

    const documented = blocksOf('jsonc').find((block) => block.includes('subdomain_host')) ?? '';
    const { Hub } = JSON.parse(documented.replace(/^\/\/.*$/m, '')) as { Hub: object };
    const moved = JSON.stringify(Hub)
      .replaceAll('https://hub.example.org', `https://hub.localhost:${port}`)
      .replace('127.0.0.1:8000', `127.0.0.1:${hubPort}`);
    const wiki = stack.use(
      await startUpstream((req, res) => void res.end(`wiki for ${req.headers['x-hub-user']}`)),
    );
    const hub = stack.use(
      await createTestHub({
        Hub: {
          ...(JSON.parse(moved) as object),
          load_roles: usersOpenServices,
          services: [
            { name: 'wiki', url: wiki.url, access: 'gateway', api_token: 'token-of-the-wiki' },
          ],
        },
      }),
    );
    const nginx = spawn(pathOf('nginx'), ['-c', file, '-p', directory], { stdio: 'ignore' });
    stack.defer(async () => {
      nginx.kill('SIGTERM');
      if (nginx.exitCode === null && nginx.signalCode === null) await once(nginx, 'exit');
    });
    await until(
      () =>
        fetch(`http://127.0.0.1:${port}/`).then(
          () => true,
          () => false,
        ),
      'nginx answers',
    );

    const browser = await hub.logIn('ada');
    const url = `${originBelow(hub, 'wiki--service')}/services/wiki/page`;
    expect(await browser.open(`${hub.url}services/wiki/page`)).toMatchObject({
      status: 200,
      body: 'wiki for ada',
      url,
    });
    expect(browser.cookieHeader(url)).toMatch(/__Host-service-wiki=/);
  });
});
