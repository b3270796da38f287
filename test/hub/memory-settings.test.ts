import { globSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { createHubFolder, spawnHubProcess, startHubProcess } from '../support/hub-process.ts';
import { programFile } from '../support/program-file.ts';
import { until } from '../support/test-hub.ts';

function optionsOf(pid: number): string[] {
  const [, ...given] = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  return given.slice(
    0,
    given.findIndex((argument) => argument.endsWith(programFile('main'))),
  );
}

test('a hub runs with a small part of its memory for young objects, under the pid it was started with', async () => {
  await using folder = await createHubFolder();
  await using hub = await folder.start();
  expect(optionsOf(hub.pid)).toContain('--max-semi-space-size=8');
  expect(readFileSync(`/proc/${hub.pid}/environ`, 'utf8')).toContain('MALLOC_ARENA_MAX=2\0');
});

test('a hub that answers its clients has loaded neither fetch nor the console for passwords', async () => {
  await using folder = await createHubFolder();
  const listAtExit =
    'process.once("exit",()=>console.log(process.moduleLoadList.map((name)=>"loaded "+name).join("\\n")))';
  await using hub = await startHubProcess(['start', '--config', folder.configFile], {
    cwd: folder.directory,
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(listAtExit)}` },
  });
  const headers = { authorization: 'token admin-service-token' };
  for (const path of ['/', '/user', '/users', '/services']) {
    expect((await fetch(folder.apiUrl + path, { headers })).status).toBe(200);
  }
  const added = { method: 'POST', headers, body: '{"usernames":["ada"]}' };
  expect((await fetch(`${folder.apiUrl}/users`, added)).status).toBe(201);
  for (const path of ['hub/health', 'hub/ready', 'hub/login']) {
    expect((await fetch(folder.url + path)).status).toBe(200);
  }
  expect((await fetch(`${folder.apiUrl}/user`)).status).toBe(403);
  hub.signal('SIGTERM');
  expect(await hub.exited).toBe(0);
  const loaded = hub.stdout().split('\n');
  expect(loaded).toContain('loaded NativeModule http');
  expect(loaded).not.toContain('loaded NativeModule internal/deps/undici/undici');
  expect(loaded).not.toContain('loaded NativeModule readline');
});

test('what the program is made of is ASCII, which Node.js keeps in half the memory', () => {
  const cwd = dirname(programFile('main'));
  const files = globSync('**/*.js', { cwd });
  expect(files.length).toBeGreaterThan(50);
  const isAscii = (file: string) => readFileSync(`${cwd}/${file}`).every((byte) => byte < 0x80);
  expect(files.filter((file) => !isAscii(file))).toEqual([]);
});

test('what an operator chose for it stays', async () => {
  await using folder = await createHubFolder();
  await using hub = spawnHubProcess(['start', '--config', folder.configFile], {
    cwd: folder.directory,
    env: { NODE_OPTIONS: '--max-semi-space-size=32' },
  });
  await until(() => hub.stdout().includes('ready'), 'hub ready');
  expect(optionsOf(hub.pid)).toEqual([]);
});
