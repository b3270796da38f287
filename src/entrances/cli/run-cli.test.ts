import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { useCommandLine } from '../../../test/support/command-line.ts';
import { ConfigError } from '../../platform/errors.ts';
import { programFolder, startedAs } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';
import { createProgram } from './run-cli.ts';

const { hub, writeConfig } = useCommandLine();

/** What is read elsewhere than where the program was started: the schema, a new configuration, scripts of shells. */
const ofOtherReaders = [
  'platform/config/*-schema.ts',
  'entrances/cli/init-config.ts',
  'entrances/cli/completion-scripts.ts',
];

describe('hub', () => {
  test('explains itself and its commands', async () => {
    const { exitCode, stdout } = await hub('--help');
    expect(exitCode).toBe(0);
    for (const command of ['start', 'check', 'reload', 'user', 'token', 'schema']) {
      expect(stdout).toMatch(new RegExp(`^  ${command}\\b`, 'm'));
    }
    expect((await hub('token --help')).stdout).toContain('--expires-in');
  });

  test('tells its version', async () => {
    const { version } = JSON.parse(
      readFileSync(join(import.meta.dirname, '../../../package.json'), 'utf8'),
    );
    expect(await hub('--version')).toMatchObject({ exitCode: 0, stdout: `${version}\n` });
  });

  test.for(['frobnicate', 'start --no-such-option', 'token', ''])(
    'answers a wrong use (%s) with exit code 1 and help',
    async (args) => {
      const { exitCode, stderr } = await hub(args);
      expect(exitCode).toBe(1);
      expect(stderr).not.toBe('');
    },
  );

  test.for([
    ['--log-level loud', 'Allowed choices are trace, debug'],
    ['--log-format xml', 'Allowed choices are auto, json, text'],
    ['--redirect-bind http://127.0.0.1/', 'needs an https:// address in --bind'],
    ['', 'set HUB_GATEWAY_TOKEN or --token-file'],
  ] as const)('starts no gateway with %s, and says why', async ([flags, reason]) => {
    const { exitCode, stderr } = await hub(`gateway --hub http://127.0.0.1:9/ ${flags}`.trim());
    expect(exitCode).toBe(1);
    expect(stderr).toContain(reason);
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });

  test.for([
    ['/srv/hub/src/main.ts', programFolder, 'npm run hub --'],
    ['/srv/hub/src/main.ts', '/srv/config', 'node /srv/hub/src/main.ts'],
    ['/srv/app/node_modules/.bin/hub', '/srv/app', 'npx hub'],
    ['/usr/local/bin/hub', '/srv/config', 'hub'],
  ] as const)(
    'started as %s in %s, names its commands as %s',
    async ([program, folder, command]) => {
      startedAs(program, folder);
      onTestFinished(() => startedAs('hub', folder));
      expect((await hub('reload')).stderr).toContain(`with: ${command} start\n`);
      const { stdout } = await hub('--help');
      expect(stdout).toContain(`Usage: ${command} [options]`);
      expect(stdout).toContain(`\n  ${command} init\n`);
      expect((await hub('logs --help')).stdout).toContain(`  ${command} logs ada -f\n`);
      expect((await hub('logs nobody')).stderr).toContain(`Users: ${command} user list`);
    },
  );

  test('is named nowhere else in what the program says', () => {
    const names = createProgram({} as CliIo).commands.map((each) => each.name());
    const spelledOut = new RegExp(
      `(?<!\\b(?:the|a|no) |[\\w.])hub (?:${names.join('|')})(?![\\w-])`,
      'i',
    );
    const src = join(import.meta.dirname, '../..');
    const found = globSync('**/*.ts', {
      cwd: src,
      exclude: ['**/*.test.ts', ...ofOtherReaders],
    }).flatMap((file) =>
      readFileSync(join(src, file), 'utf8')
        .split('\n')
        .filter((line) => !/^\s*(?:\*|\/[/*])/.test(line) && spelledOut.test(line))
        .map((line) => `${file}: ${line.trim()}`),
    );
    expect(found).toEqual([]);
  });
});

describe('hub schema', () => {
  test('describes the hub and its plugins, secrets included', async () => {
    const { stdout } = await hub('schema');
    const schema = JSON.parse(stdout);
    expect(Object.keys(schema.properties)).toEqual(
      expect.arrayContaining(['$schema', 'Hub', 'Authenticator', 'Spawner', 'Proxy']),
    );
    const { properties } = schema.properties.DummyAuthenticator;
    expect(properties.password.anyOf).toHaveLength(3);
    expect(schema.properties.Hub.properties.bind_url.default).toBe('http://127.0.0.1:8000/');
  });

  test('types what profiles say to their spawners, and refuses what none of them knows', async () => {
    const schema = JSON.parse((await hub('schema')).stdout);
    const { anyOf } = schema.properties.Spawner.properties.profiles.items.properties.options;
    const keysOf = (section: string) =>
      Object.keys(
        anyOf.find(({ title }: { title: string }) => title.startsWith(section)).properties,
      );
    expect(keysOf('DockerSpawner')).toContain('pull_policy');
    expect(keysOf('SlurmSpawner')).toContain('partition');
    for (const choice of anyOf) expect(choice.additionalProperties).toBe(false);
  });

  test('hub.schema.json is what it prints; if not: npm run schema', async () => {
    const file = join(import.meta.dirname, '../../../hub.schema.json');
    expect(readFileSync(file, 'utf8')).toBe((await hub('schema')).stdout);
  });
});

describe('hub start', () => {
  test('hands the checked configuration and its plugins to the hub', async () => {
    writeConfig({ Hub: { title: 'Lab' } });
    const started = await hub('start', {
      async startHub({ checked, reload }) {
        expect(checked.config.Hub.title).toBe('Lab');
        expect(checked.plugins.authenticators).toHaveLength(1);
        writeConfig({ Hub: { title: 'New' } });
        expect((await reload()).config.Hub.title).toBe('New');
        writeConfig({ Hub: { titel: 'New' } });
        await expect(reload()).rejects.toBeInstanceOf(ConfigError);
      },
    });
    expect(started).toMatchObject({ exitCode: 0, stderr: '' });
  });

  test('exits with 2 for a wrong configuration, without starting', async () => {
    writeConfig({ Hub: { titel: 'x' } });
    expect(await hub('start')).toMatchObject({ exitCode: 2 });
  });

  test('is refused while a hub runs with this file, with its process', async () => {
    let isStarted = false;
    await hub('start', {
      async startHub() {
        const second = await hub('start', {
          async startHub() {
            isStarted = true;
          },
        });
        expect(second.exitCode).toBe(1);
        expect(second.stderr).toBe(
          `A hub runs with this configuration already (process ${process.pid}). To change it while it runs: hub reload\n`,
        );
      },
    });
    expect(isStarted).toBe(false);
    const later = await hub('start', { startHub: () => Promise.resolve() });
    expect(later).toMatchObject({ exitCode: 0 });
  });

  test('exits with 1 when the hub cannot start', async () => {
    const failed = await hub('start', { startHub: () => Promise.reject(new Error('EADDRINUSE')) });
    expect(failed.exitCode).toBe(1);
    expect(failed.stderr).toContain('EADDRINUSE');
  });
});

describe('hub reload', () => {
  test('signals the hub that runs with this file, and only while it runs', async () => {
    const signalled = Promise.withResolvers<void>();
    const onSignal = () => signalled.resolve();
    process.on('SIGHUP', onSignal);
    try {
      await hub('start', {
        async startHub() {
          const reloaded = await hub('reload');
          expect(reloaded).toMatchObject({ exitCode: 0 });
          expect(reloaded.stdout).toContain(`process ${process.pid}`);
          await signalled.promise;
        },
      });
    } finally {
      process.off('SIGHUP', onSignal);
    }
    expect(await hub('reload')).toMatchObject({ exitCode: 1 });
  });

  test('leaves the hub alone when the new configuration is wrong', async () => {
    await hub('start', {
      async startHub() {
        writeConfig({ Hub: { titel: 'x' } });
        expect(await hub('reload')).toMatchObject({ exitCode: 2 });
      },
    });
  });
});
