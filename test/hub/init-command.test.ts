import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { initConfigText, logins, serverKinds } from '../../src/entrances/cli/init-config.ts';
import { requires } from '../support/requires.ts';
import { runCommand } from '../support/run-command.ts';
import { selfSigned } from '../support/tls-front.ts';

const emptyFolder = () => mkdtempSync(join(tmpdir(), 'hub-init-'));
const env = { PATH: '/nowhere', HUB_CLIENT_SECRET: 'of-the-provider' };

describe('hub init', () => {
  test('writes a configuration that is right, and says what is next', async () => {
    const folder = emptyFolder();
    const init = await runCommand(folder, ['init', '--yes', '--title', 'Physics Lab'], { env });
    expect(init).toMatchObject({ exitCode: 0, stderr: '' });
    expect(init.stdout).toBe('hub.config.json is written.\nNext: hub start\n');
    const check = await runCommand(folder, ['check'], { env });
    expect(check).toMatchObject({ exitCode: 0 });
    expect(readFileSync(join(folder, 'hub.config.json'), 'utf8')).toContain('"Physics Lab"');
    expect(statSync(join(folder, 'hub.config.json')).mode & 0o777).toBe(0o600);
  });

  test('asks for what is left open, in order', async () => {
    const folder = emptyFolder();
    const typed = [
      'Lab',
      'https://hub.example.org/lab',
      'acme',
      'ops@example.org',
      'oidc',
      'https://login.example.org',
      'the-hub',
      'ada',
      'my-app --port {port}',
      '',
    ].join('\n');
    const init = await runCommand(folder, ['init'], { typed, env });
    expect(init.exitCode).toBe(0);
    expect(init.stdout).toContain('https://hub.example.org/lab/hub/oauth_callback');
    const text = readFileSync(join(folder, 'hub.config.json'), 'utf8');
    for (const part of [
      '"public_url": "https://hub.example.org/lab/"',
      '"bind_url": "https://0.0.0.0:443/lab/"',
      '"acme": { "accept_terms": true, "email": "ops@example.org" }',
      '"issuer": "https://login.example.org"',
      '"admin_users": ["ada"]',
      '"cmd": "my-app --port {port}"',
    ])
      expect(text).toContain(part);
    expect(await runCommand(folder, ['check'], { env })).toMatchObject({ exitCode: 0 });
  });

  test('never writes over a file, and writes nothing where an answer is wrong', async () => {
    const folder = emptyFolder();
    writeFileSync(join(folder, 'hub.config.json'), '{}');
    const again = await runCommand(folder, ['init', '--yes'], { env });
    expect([again.exitCode, again.stderr]).toEqual([
      1,
      expect.stringContaining('exists already, and is left as it is'),
    ]);
    for (const [args, said] of [
      [['--url', 'hub.example.org'], 'is no address'],
      [['--login', 'facebook'], 'no login that is set up here'],
      [['--login', 'github'], '--set client_id='],
      [['--server', 'jupyter'], '"jupyter" is no server that is set up here'],
      [['--server', 'jupiter-lab'], 'For example: jupyter-lab, '],
      [['--url', 'https://h.example.org/', '--tls', 'files'], '--set certificate='],
      [['--url', 'https://h.example.org/', '--tls', 'magic'], 'does not end TLS'],
    ] as const) {
      const other = emptyFolder();
      const init = await runCommand(other, ['init', '--yes', ...args], { env });
      expect([init.exitCode, init.stderr]).toEqual([1, expect.stringContaining(said)]);
      const start = await runCommand(other, ['start'], { env });
      expect([start.exitCode, start.stderr]).toEqual([2, expect.stringContaining('hub init')]);
    }
    const left = await runCommand(emptyFolder(), ['init'], { typed: 'Lab\n', env });
    expect(left.stderr).toContain('nothing was written');
  });

  test('takes a program for what each user gets, but not one that starts no server', async () => {
    const folder = emptyFolder();
    for (const name of ['jupyter', 'my-app'])
      writeFileSync(join(folder, name), '#!/bin/sh\n', { mode: 0o755 });
    const init = async (server: string) => {
      const args = ['init', '--yes', '--server', server];
      return (await runCommand(folder, args, { env: { ...env, PATH: folder } })).exitCode;
    };
    expect([await init('jupyter'), await init('my-app')]).toEqual([1, 0]);
  });

  const canVerify = requires('openssl', 'systemd');
  test.skipIf(!canVerify)(
    'takes certificates of files, and writes a unit that systemd understands',
    async () => {
      const folder = emptyFolder();
      const { cert, key } = selfSigned(['hub.example.org']);
      writeFileSync(join(folder, 'hub.pem'), cert);
      writeFileSync(join(folder, 'hub.key'), key, { mode: 0o600 });
      const tls = ['--tls', 'files', '--set', 'certificate=hub.pem', '--set', 'key=hub.key'];
      const args = ['init', '--yes', '--url', 'https://hub.example.org/', ...tls, '--systemd'];
      const init = await runCommand(folder, args, { env });
      const unit = join(folder, 'hub.service');
      expect(init).toMatchObject({ exitCode: 0, stderr: '' });
      expect(init.stdout).toContain(`Next: sudo systemctl enable --now ${unit}\n`);
      expect(await runCommand(folder, ['check'], { env })).toMatchObject({ exitCode: 0 });
      const text = readFileSync(unit, 'utf8');
      expect(text).toContain(`start --config ${folder}/hub.config.json\n`);
      expect(text).toMatch(/^AmbientCapabilities=CAP_NET_BIND_SERVICE$/m);
      expect(text).not.toMatch(/\/opt\/hub|\/var\/lib\/hub/);
      const found = spawnSync('systemd-analyze', ['verify', unit], { encoding: 'utf8' });
      expect(found.stderr.split('\n').filter((line) => line.includes('hub.service'))).toEqual([]);
    },
  );

  const choices = Object.keys(logins).flatMap((login) =>
    [...Object.keys(serverKinds), 'none'].map((server) => [login, server] as const),
  );
  test.each(choices)('every choice is a right configuration: %s, %s', async (login, server) => {
    const folder = emptyFolder();
    const given = { issuer: 'https://login.example.org', client_id: 'hub', tenant: 'example.org' };
    const text = initConfigText(
      {
        title: 'Hub',
        url: new URL('http://127.0.0.1:8000/'),
        tls: 'proxy',
        tlsSettings: {},
        login,
        loginSettings: given,
        admins: ['ada'],
        server,
      },
      './hub.schema.json',
    );
    writeFileSync(join(folder, 'hub.config.json'), text);
    const { exitCode, stdout, stderr } = await runCommand(folder, ['check'], { env });
    expect(exitCode).toBe(0);
    expect(stdout + stderr).not.toContain('Hub.load_roles');
  });
});
