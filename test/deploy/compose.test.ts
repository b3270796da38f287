import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { loadCheckedConfig } from '../../src/cli/checked-config.ts';
import { requireComponent } from '../support/components.ts';
import { createHubFolder, spawnHubProcess } from '../support/hub-process.ts';
import { projectDirectory } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const run = promisify(execFile);
const compose = '/usr/bin/docker-compose';
const file = join(projectDirectory, 'deploy', 'compose.yaml');
const secrets = {
  POSTGRES_PASSWORD: 'only-for-this-test',
  HUB_COOKIE_SECRET: randomBytes(32).toString('hex'),
  DOCKER_GROUP_ID: '999',
};

describe.runIf(requireComponent('docker-compose', compose))('the compose file', () => {
  const configured = (env: Readonly<Record<string, string>>, ...args: string[]) =>
    run(compose, ['--file', file, 'config', ...args], { env: { PATH: '/usr/bin:/bin', ...env } });

  test('is one for docker-compose, with the hub, its database and Redis', async () => {
    const { stdout } = await configured(secrets, '--services');
    expect(stdout.trim().split('\n').toSorted()).toEqual(['database', 'hub', 'redis']);
  });

  test.for(Object.keys(secrets))('does not start without %s, and says so', async (name) => {
    const { [name]: _, ...others } = { ...secrets } as Record<string, string>;
    await expect(configured(others)).rejects.toThrow(`set it in deploy/.env`);
  });
});

test('the configuration of the compose file is right', async () => {
  const config = join(projectDirectory, 'deploy', 'compose.hub.config.json');
  const env = {
    HUB_COOKIE_SECRET: secrets.HUB_COOKIE_SECRET,
    HUB_DATABASE_URL: 'postgresql://hub:only-for-this-test@database/hub',
  };
  const { config: checked } = await loadCheckedConfig({ file: config, env });
  expect(checked.Spawner.class).toBe('docker');
});

/** The instructions of the Dockerfile's last stage, each as its name and its words. */
function lastStage(): readonly (readonly [name: string, rest: string])[] {
  const text = readFileSync(join(projectDirectory, 'deploy', 'Dockerfile'), 'utf8');
  const stage = text.slice(text.lastIndexOf('\nFROM ') + 1);
  return [...stage.matchAll(/^([A-Z]+) (.+)$/gm)].map(([, name = '', rest = '']) => [name, rest]);
}

const restOf = (name: string) => lastStage().find(([each]) => each === name)?.[1] ?? '';

test('what the Dockerfile copies is enough for a hub, and its health check tells how that is', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'hub-image-'));
  const ignored = (path: string) => path.endsWith('.test.ts');
  for (const [name, rest] of lastStage()) {
    if (name !== 'COPY' || rest.startsWith('--from')) continue;
    const words = rest.split(' ');
    const target = words.pop() ?? '';
    for (const source of words) {
      expect(existsSync(join(projectDirectory, source)), source).toBe(true);
      const copy = words.length > 1 ? join(directory, target, source) : join(directory, target);
      cpSync(join(projectDirectory, source), copy, {
        recursive: true,
        filter: (path) => !ignored(path),
      });
    }
  }
  symlinkSync(join(projectDirectory, 'node_modules'), join(directory, 'node_modules'));
  expect(globSync('**/*.test.ts', { cwd: directory, exclude: ['node_modules/**'] })).toEqual([]);

  await using folder = await createHubFolder({ Hub: { plugins_dir: join(directory, 'plugins') } });
  const [, , command, ...args] = JSON.parse(restOf('CMD')) as string[];
  expect([command, ...args]).toEqual(['start', '--config', '/srv/hub/hub.config.json']);
  const [, check = ''] = restOf('HEALTHCHECK').split(' CMD ');
  const [, ...words] = JSON.parse(check.replace('http://127.0.0.1:8000/', folder.url)) as string[];
  const isHealthy = () =>
    run(process.execPath, words).then(
      () => true,
      () => false,
    );
  expect(await isHealthy()).toBe(false);
  await using hub = spawnHubProcess(['start', '--config', folder.configFile], {
    cwd: folder.directory,
    program: join(directory, 'src', 'main.ts'),
  });
  await until(isHealthy, 'the hub is healthy');
  hub.signal('SIGTERM');
  expect(await hub.exited).toBe(0);
  expect(await isHealthy()).toBe(false);
  rmSync(directory, { recursive: true });
});
