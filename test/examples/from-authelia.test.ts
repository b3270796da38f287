import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'jsonc-parser';
import { generateSync } from 'otplib';
import { describe, expect, test } from 'vitest';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { useCommandLine } from '../support/command-line.ts';
import { documentedBlock } from '../support/documented-blocks.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { submitMain } from '../support/pages.ts';
import { acceptInvitation, testPassword } from '../support/password-hub.ts';
import { requires } from '../support/requires.ts';
import { runCommand } from '../support/run-command.ts';
import { createTestHub, submitLogin, type TestHubConfig } from '../support/test-hub.ts';
import { startConfigured } from '../support/web-servers.ts';

const page = 'docs/how-to/from-authelia.md';
const users = 'username,email\nada,ada@example.org\nbob,bob@example.org\n';

interface PageConfig extends TestHubConfig {
  readonly Hub: Readonly<Record<string, unknown>>;
}

/** The page's hub and its two apps behind Caddy, with users as Authelia's `users_database.yml` had them. */
async function createWorld() {
  const stack = new AsyncDisposableStack();
  const app = stack.use(
    await startUpstream(({ headers }, res) => void res.end(JSON.stringify(headers))),
  );
  const [port, hubPort] = [await freePort(), await freePort()];
  const hubUrl = `http://hub.localhost:${port}/`;
  const here = (block: string) =>
    block
      .replaceAll('https://hub.example.org/', hubUrl)
      .replaceAll('127.0.0.1:8000', `127.0.0.1:${hubPort}`)
      .replaceAll('127.0.0.1:3000', new URL(app.url).host)
      .replaceAll('.example.org', '.localhost');
  const { Hub, ...config } = parse(here(documentedBlock(page, 'jsonc'))) as PageConfig;
  const directory = await mkdtemp(join(tmpdir(), 'hub-from-authelia-'));
  stack.defer(() => rm(directory, { recursive: true }));
  const run = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await runCommand(directory, args);
    expect(exitCode, stderr).toBe(0);
    return stdout;
  };
  await writeFile(join(directory, 'hub.config.json'), here(documentedBlock(page, 'jsonc')));
  await writeFile(join(directory, 'users.csv'), users);
  await run('user', 'import', 'users.csv', '--yes');
  const hub = stack.use(
    await createTestHub(
      {
        ...config,
        Hub: { authenticator_class: 'password', ...Hub, bind_url: `http://127.0.0.1:${hubPort}/` },
        Authenticator: { ...config.Authenticator, allow_all: false },
      },
      { directory },
    ),
  );
  const sites = [documentedBlock(page, 'caddyfile')];
  sites.push(documentedBlock('docs/how-to/forward-auth.md', 'caddyfile'));
  const caddyfile = `{\n  admin off\n  auto_https off\n  http_port ${port}\n  default_bind 127.0.0.1\n}
http://hub.localhost {\n  reverse_proxy 127.0.0.1:${hubPort}\n}
${sites.map((site) => here(site).replace(/^(?=\w)/, 'http://')).join('\n')}`;
  stack.use(await startConfigured('Caddy', port, () => caddyfile));
  return {
    hub,
    hubUrl,
    wiki: `http://wiki.localhost:${port}/`,
    grafana: `http://grafana.localhost:${port}/`,
    run,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

describe('the page for those who come from Authelia', () => {
  const { writeConfig, hub } = useCommandLine();

  test('shows a configuration without a problem', async () => {
    writeConfig(parse(documentedBlock(page, 'jsonc')) as object);
    const { exitCode, stdout, stderr } = await hub('check');
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).not.toContain('Proxy.');
  });

  test.skipIf(!requires('caddy'))('has the same rules for its apps', async () => {
    await using world = await createWorld();
    const { wiki, grafana, hubUrl } = world;

    for (const name of ['ada', 'bob']) {
      const link = /\S+\?secret=(\S+)/.exec(await world.run('user', 'invite', name));
      await acceptInvitation({ ...world.hub, url: hubUrl }, link?.[1] ?? '', testPassword);
    }

    // `default_policy: deny`, `policy: bypass`.
    const visitor = new FakeBrowser();
    for (const url of [wiki, grafana]) {
      const { status, headers } = await visitor.request(url, {
        headers: { 'remote-user': 'ada' },
      });
      expect([status, headers.location]).toEqual([302, expect.stringContaining(hubUrl)]);
    }
    expect((await visitor.request(`${grafana}status`)).status).toBe(200);

    // `policy: one_factor`, and the headers; no group, no other app.
    const bob = new FakeBrowser();
    await submitLogin(bob, hubUrl, 'bob', testPassword);
    expect((await bob.open(wiki)).status).toBe(200);
    const forged = { 'remote-user': 'ada', 'remote-groups': 'admins', connection: 'remote-user' };
    const { body } = await bob.request(`${wiki}page`, { headers: forged });
    const seen = JSON.parse(body) as Record<string, string>;
    expect([seen['remote-user'], seen['remote-groups'] ?? '', seen['remote-email']]).toEqual([
      'bob',
      '',
      'bob@example.org',
    ]);
    expect((await bob.open(grafana)).status).toBe(403);

    // `policy: two_factor` and `subject: group:admins`.
    const ada = new FakeBrowser();
    const setUp = await ada.follow(
      await submitLogin(ada, hubUrl, 'ada', testPassword, '/hub/home'),
    );
    expect((await ada.open(grafana)).url).toContain('/hub/login');
    const [, key = ''] = /id="copy-key"[^>]*>([A-Z2-7 ]+)</.exec(setUp.body) ?? [];
    const secret = key.replaceAll(' ', '');
    await submitMain(ada, setUp, { code: generateSync({ secret }) });
    expect((await ada.open(grafana)).status).toBe(200);
  });
});
