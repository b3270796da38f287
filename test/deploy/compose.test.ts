import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { globSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { loadCheckedConfig } from '../../src/entrances/cli/checked-config.ts';
import { copyBuildContext, imageInstruction } from '../support/hub-image.ts';
import { createHubFolder, spawnHubProcess } from '../support/hub-process.ts';
import { pathOf, requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const run = promisify(execFile);
const secrets = {
  POSTGRES_PASSWORD: 'only-for-this-test',
  HUB_COOKIE_SECRET: randomBytes(32).toString('hex'),
  DOCKER_GROUP_ID: '999',
};
const files = [
  {
    name: 'compose.yaml',
    config: 'compose.hub.config.json',
    secrets,
    services: ['database', 'hub', 'redis'],
  },
  {
    name: 'compose.several-hubs.yaml',
    config: 'compose.several-hubs.config.json',
    secrets: { ...secrets, HUB_GATEWAY_TOKEN: randomBytes(32).toString('hex') },
    services: ['balancer', 'database', 'gateway-a', 'gateway-b', 'hub-a', 'hub-b', 'redis'],
  },
] as const;

describe.each(files)('$name', ({ name: file, config, services, ...given }) => {
  const all: Readonly<Record<string, string>> = given.secrets;

  describe.runIf(requires('docker-compose'))('for docker-compose', () => {
    const configured = (env: Readonly<Record<string, string>>, ...args: string[]) =>
      run(
        pathOf('docker-compose'),
        ['--file', join(projectDirectory, 'deploy', file), 'config', ...args],
        {
          env: { PATH: '/usr/bin:/bin', ...env },
        },
      );

    test('has the services that it is there for', async () => {
      const { stdout } = await configured(all, '--services');
      expect(stdout.trim().split('\n').toSorted()).toEqual(services);
    });

    test.for(Object.keys(all))('does not start without %s, and says so', async (name) => {
      const { [name]: _, ...others } = all;
      await expect(configured(others)).rejects.toThrow(`set it in deploy/.env`);
    });
  });

  test('has a configuration that is right', async () => {
    const env = {
      ...all,
      HUB_DATABASE_URL: 'postgresql://hub:only-for-this-test@database/hub',
      HUB_INSTANCE_URL: 'http://hub-a.inside:8080',
    };
    const { config: checked } = await loadCheckedConfig({
      file: join(projectDirectory, 'deploy', config),
      env,
    });
    expect(checked.Spawner.class).toBe('docker');
  });
});

test.runIf(requires('bash'))(
  'what the Dockerfile copies is enough to build a hub, and its health check tells how that is',
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'hub-image-'));
    copyBuildContext(directory);
    symlinkSync(join(projectDirectory, 'node_modules'), join(directory, 'node_modules'));
    await run('npm', ['run', 'build'], { cwd: directory });
    const program = join(directory, 'dist');
    expect(globSync('{src,plugins}/**/*.ts', { cwd: program, exclude: ['**/*.d.ts'] })).toEqual([]);

    await using folder = await createHubFolder();
    await folder.configure({
      Hub: { plugins_dir: join(program, 'plugins'), bind_url: `${folder.url}lab/` },
    });
    const [, , command, ...args] = JSON.parse(imageInstruction('CMD')) as string[];
    expect([command, ...args]).toEqual(['start', '--config', '/srv/hub/hub.config.json']);
    const [, check = ''] = imageInstruction('HEALTHCHECK').split(' CMD ');
    const hubPort = new URL(folder.apiUrl).host.replace(':', '/');
    const [shell = '', ...words] = JSON.parse(check.replace('127.0.0.1/8080', hubPort)) as string[];
    const isHealthy = () =>
      run(shell, words).then(
        () => true,
        () => false,
      );
    expect(await isHealthy()).toBe(false);
    await using hub = spawnHubProcess(['start', '--config', folder.configFile], {
      cwd: folder.directory,
      program: join(program, 'src', 'main.js'),
    });
    await until(isHealthy, 'the hub is healthy');
    hub.signal('SIGTERM');
    expect(await hub.exited).toBe(0);
    expect(await isHealthy()).toBe(false);
    rmSync(directory, { recursive: true });
  },
);
