/**
 * Tries what `npm run build` made as somebody who installs it: packs `dist/`, installs the package
 * into an empty folder, checks a configuration, starts the hub, asks for its health, and compiles a
 * program against `hub/client`. Run with `npm run test:dist`.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const root = join(import.meta.dirname, '..');
const folder = mkdtempSync(join(tmpdir(), 'hub-package-'));
try {
  installPackage();
  const config = {
    Hub: {
      bind_url: `http://127.0.0.1:${await freePort()}/`,
      hub_bind_url: `http://127.0.0.1:${await freePort()}`,
    },
  };
  writeFileSync(join(folder, 'hub.config.json'), JSON.stringify(config));
  assert.match(run('hub', ['check']), /is fine/);
  assert.match(run('hub', ['--version']), /^\d+\.\d+\.\d+$/m);
  assert.match(run('hub-singleuser', ['--help']), /in front of any web app/);
  await startAndAsk(config.Hub.bind_url);
  compileConsumer();
  console.log('The package installs, starts and can be compiled against.');
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function installPackage(): void {
  const pack = ['pack', join(root, 'dist'), '--pack-destination', folder, '--json'];
  const [packed] = JSON.parse(npm(pack)) as [{ filename: string }];
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  npm(['install', '--no-audit', '--no-fund', '--prefer-offline', join(folder, packed.filename)]);
}

function npm(args: readonly string[]): string {
  return execFileSync('npm', args, {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

function program(name: string): string {
  return join(folder, 'node_modules', '.bin', name);
}

function run(name: string, args: readonly string[]): string {
  return execFileSync(program(name), args, { cwd: folder, encoding: 'utf8' });
}

async function startAndAsk(url: string): Promise<void> {
  const hub = spawn(program('hub'), ['start'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    await lineWith(hub, 'The hub is ready');
    const health = await fetch(new URL('hub/health', url));
    assert.deepEqual(await health.json(), { status: 'ok' });
    const login = await fetch(new URL('hub/login', url));
    const [, stylesheet = ''] = /href="([^"]*site[^"]*\.css)"/.exec(await login.text()) ?? [];
    assert.equal((await fetch(new URL(stylesheet, url))).status, 200);
  } finally {
    const exited = once(hub, 'exit');
    hub.kill('SIGTERM');
    assert.deepEqual(await exited, [0, null]);
  }
}

async function lineWith(child: ChildProcess, text: string): Promise<void> {
  assert.ok(child.stdout !== null);
  for await (const line of createInterface({ input: child.stdout })) {
    if (line.includes(text)) break;
  }
  child.stdout.resume();
  assert.equal(child.exitCode, null, 'the hub ended before it was ready');
}

/** The declarations must lead a compiler from `hub/client` to every type behind it. */
function compileConsumer(): void {
  mkdirSync(join(folder, 'consumer'));
  const file = join(folder, 'consumer', 'service.ts');
  writeFileSync(
    file,
    `import { HubOAuth, type UserModel } from 'hub/client';
import type { AuthenticatorPlugin } from 'hub/plugin';
const hubAuth = new HubOAuth({ api_token: 'a-secret-token', service_name: 'x' });
export const prefix: string = hubAuth.service_prefix;
export const name = (user: UserModel): string => user.name;
// @ts-expect-error A plugin has a name that is text.
export const wrong: AuthenticatorPlugin['name'] = 1;
// @ts-expect-error There is no such option.
export const other = new HubOAuth({ no_such_option: 1 });
`,
  );
  const compiler = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
  const flags = [
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--module',
    'nodenext',
    '--target',
    'es2024',
  ];
  execFileSync(process.execPath, [compiler, ...flags, file], { cwd: folder, stdio: 'inherit' });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  server.close();
  await once(server, 'close');
  return address.port;
}
