import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, renameSync } from 'node:fs';
import { appendFile, cp, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeDebianPackage } from '../../scripts/debian-package.ts';
import { freePort } from '../support/free-port.ts';
import { programFile } from '../support/program-file.ts';
import { pathOf, requires } from '../support/requires.ts';
import { projectDirectory } from '../support/services.ts';
import { until } from '../support/test-hub.ts';

const run = promisify(execFile);
const isThere = requires('root', 'mmdebstrap', 'lintian', 'strace', 'systemd', 'unshare');

/** Debian with nothing but its essential packages and those that this one depends on; fetched once. */
async function createRoot(folder: string): Promise<void> {
  const archive = join(projectDirectory, 'node_modules', '.cache', 'debian-root.tar');
  if (!existsSync(archive)) {
    const unfinished = `${archive}-${process.pid}.tar`;
    const packages = '--include=systemd,libstdc++6';
    await run(pathOf('mmdebstrap'), ['--variant=essential', packages, 'bookworm', unfinished]);
    renameSync(unfinished, archive);
  }
  await run('tar', ['-xf', archive, '-C', folder]);
}

const versions = ['0.1.0', '0.1.1'] as const;
/** No power is cut here, so nothing has to wait for the disk. */
const dpkgInstall = ['dpkg', '--force-unsafe-io', '--install'];

describe.skipIf(!isThere)('the package for Debian, in a clean Debian', () => {
  let folder: string;
  let debian: string;
  let packages: string[];
  const at = (path: string) => join(debian, path);
  const modeOf = async (path: string) => ((await stat(at(path))).mode & 0o7777).toString(8);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hub-debian-test-'));
    debian = join(folder, 'root');
    await mkdir(debian);
    await createRoot(debian);
    const built = dirname(dirname(programFile('main')));
    packages = [];
    for (const version of versions) {
      const dist = join(folder, version);
      await cp(built, dist, { recursive: true });
      const manifest = await readFile(join(dist, 'package.json'), 'utf8');
      await writeFile(
        join(dist, 'package.json'),
        JSON.stringify({ ...(JSON.parse(manifest) as object), version }),
      );
      packages.push(writeDebianPackage({ dist, folder, version, isQuick: true }));
    }
    await Promise.all(packages.map((file) => cp(file, at(join('tmp', basename(file))))));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  /** Runs a command in that Debian, with processes of its own. */
  const inside = (...command: string[]) => {
    const isolated = ['--pid', '--fork', '--kill-child', '--mount', `--mount-proc=${at('proc')}`];
    return [...isolated, '--', 'chroot', debian, ...command];
  };
  const call = async (...command: string[]) =>
    (await run(pathOf('unshare'), inside(...command))).stdout;
  const archive = (index: number) => join('/tmp', basename(packages[index] ?? ''));
  const install = (index: number) => call(...dpkgInstall, archive(index));
  const asHub = (...command: string[]) => ['runuser', '-u', 'hub', '--', ...command];
  const config = '/var/lib/hub/hub.config.json';
  /** The port of the hub. */
  let open: number;

  test('has nothing that lintian calls an error', async () => {
    const [file = ''] = packages;
    const { stdout } = await run(pathOf('lintian'), ['--allow-root', '--fail-on', 'error', file]);
    expect(stdout).not.toMatch(/^E:/m);
  });

  test('installs an account, a configuration that is right, and a unit that is switched on', async () => {
    await install(0);
    expect(await call('hub', '--version')).toBe('0.1.0\n');
    expect(await call(...asHub('hub', 'check', '--config', config))).toContain('is fine');
    expect(await modeOf('etc/hub/hub.config.json')).toBe('640');
    expect(await modeOf('var/lib/hub')).toBe('711');
    expect(await call('stat', '-c', '%U:%G', '/etc/hub/hub.config.json', '/var/lib/hub')).toBe(
      'root:hub\nhub:hub\n',
    );
    const wanted = '/etc/systemd/system/multi-user.target.wants/hub.service';
    expect(await call('readlink', wanted)).toBe('/lib/systemd/system/hub.service\n');
    const exposure = ['security', '--offline=true', `--root=${debian}`, '--threshold=40'];
    await run('systemd-analyze', [...exposure, 'hub.service']);
  });

  /** Runs the installed hub until it is ready. */
  async function startOnce(): Promise<void> {
    const hub = spawn(pathOf('unshare'), inside(...asHub('hub', 'start', '--config', config)));
    const ended = once(hub, 'exit');
    await until(async () => {
      const answer = await fetch(`http://127.0.0.1:${open}/hub/ready`).catch(() => undefined);
      return answer?.status === 200;
    }, 'the hub is ready');
    hub.kill('SIGKILL');
    await ended;
  }

  test('runs a hub on nothing but what it brings', async () => {
    const text = await readFile(at('etc/hub/hub.config.json'), 'utf8');
    const internal = await freePort();
    open = await freePort();
    const edited = text.replace(':8000/', `:${open}/`).replace(':8080', `:${internal}`);
    await writeFile(at('etc/hub/hub.config.json'), edited);
    await startOnce();
    expect(await modeOf('var/lib/hub/hub.sqlite')).toBe('600');
  });

  /** What dpkg has of the package: whether it must be installed again, its state and its version. */
  async function state(): Promise<string> {
    const status = await call('dpkg', '--status', 'hub-gateway');
    const [, words] = /^Status: install (.+)$/m.exec(status) ?? [];
    return `${words} ${/^Version: (\S+)$/m.exec(status)?.[1]}`;
  }

  /** What an upgrade must leave as it is. */
  const data = async () => [
    await call(...asHub('hub', 'user', 'list', '--config', config)),
    await readFile(at('etc/hub/hub.config.json'), 'utf8'),
    await modeOf('etc/hub/hub.config.json'),
    await modeOf('var/lib/hub'),
  ];

  /** Installs the new version under strace, with programs of `/tmp/killing` in the place of others. */
  async function traceUpgrade(...options: string[]): Promise<string> {
    const upgrade = `PATH=/tmp/killing:$PATH ${dpkgInstall.join(' ')} ${archive(1)}; echo "ended with $?"`;
    const command = inside('sh', '-c', upgrade);
    command.splice(command.indexOf('--') + 1, 0, pathOf('strace'), '-f', ...options);
    return (await run(pathOf('unshare'), command)).stdout;
  }

  /** Fails unless a version of the package is there as a whole, and its hub runs. */
  async function expectWhole(index: 0 | 1): Promise<void> {
    expect(await state()).toBe(`ok installed ${versions[index]}`);
    expect(await call('hub', '--version')).toBe(`${versions[index]}\n`);
    // Of the configuration, which is not as the package has it, it says so.
    const verified = await run(pathOf('unshare'), inside('dpkg', '--verify', 'hub-gateway')).catch(
      (error: { stdout: string }) => error,
    );
    expect(verified.stdout).toMatch(/^\?\?5\S+ c \/etc\/hub\/hub\.config\.json\n$/);
    expect(await call('find', '/usr', '/lib', '/etc', '-name', '*.dpkg-*')).toBe('');
    await startOnce();
  }

  test('is whole again, with all data, after an upgrade that was killed', async () => {
    await call(...asHub('hub', 'user', 'add', 'ada', '--no-password', '--config', config));
    const before = await data();
    expect(before[0]).toContain('ada');

    // One whole upgrade says how many steps of each kind there are.
    const log = join(folder, 'trace');
    await traceUpgrade('-o', log, '-e', 'trace=openat,/^rename');
    await expectWhole(1);
    await install(0);
    const lines = (await readFile(log, 'utf8')).split('\n');
    const [dpkg] = /^\d+/.exec(lines.find((line) => line.includes('.dpkg-new"')) ?? '') ?? [];
    const count = (name: string) =>
      lines.filter((line) => new RegExp(`^${dpkg} +${name}\\w*\\(`).test(line)).length;
    const [opened, renamed] = [count('openat'), count('rename')];
    const steps = [
      ['openat', Math.round(opened / 2)] as const,
      ['rename', Math.round(renamed / 2)] as const,
      ['rename', renamed - 1] as const,
    ];

    const states = new Set<string>();
    let killed = 0;
    /** Finishes the upgrade, or goes back to the old version, by turns. */
    async function recover(step: string): Promise<void> {
      const left = await state();
      states.add(left);
      killed += 1;
      const back = killed % 2 === 0;
      // A package that is unpacked is only to be configured; another is to be installed again.
      if (back) await install(0);
      else if (/^ok (?:unpacked|half-configured)/.test(left))
        await call('dpkg', '--configure', '-a');
      else await install(1);
      await expectWhole(back ? 0 : 1);
      expect(await data(), `killed at ${step}, when it was ${left}`).toEqual(before);
      if (!back) await install(0);
    }

    for (const [name, index] of steps) {
      const kill = ['-e', `trace=/^${name}`, '-e', `inject=/^${name}:signal=KILL:when=${index}`];
      const ended = await traceUpgrade('-o', '/dev/null', ...kill);
      expect(ended, `${name} ${index}`).toContain('ended with 137');
      await recover(`${name} ${index}`);
    }
    // The script of the package has started it, and dpkg that one.
    const killer = '#!/bin/sh\nread -r _ _ _ dpkg _ </proc/$PPID/stat\nkill -KILL "$dpkg"\n';
    await mkdir(at('tmp/killing'));
    await writeFile(at('tmp/killing/systemd-sysusers'), killer, { mode: 0o755 });
    const ended = await traceUpgrade('-o', '/dev/null', '-e', 'trace=none');
    expect(ended).toContain('ended with 137');
    expect(await state()).toBe('ok half-configured 0.1.1');
    await rm(at('tmp/killing'), { recursive: true });
    await recover('configuring');
    expect([...states].some((each) => each.startsWith('reinstreq '))).toBe(true);
  });

  test('is upgraded, removed and purged, and keeps what is the operator’s and the users’', async () => {
    await appendFile(at('etc/hub/hub.config.json'), '// Of the operator.\n');
    await mkdir(at('var/lib/hub/homes/ada'), { recursive: true });
    await writeFile(at('var/lib/hub/homes/ada/notes'), 'hers');
    await install(1);
    expect(await call('dpkg', '--status', 'hub-gateway')).toContain('Version: 0.1.1\n');
    expect(await readFile(at('etc/hub/hub.config.json'), 'utf8')).toContain('Of the operator.');
    expect(await modeOf('etc/hub/hub.config.json')).toBe('640');

    await call('dpkg', '--remove', 'hub-gateway');
    expect([existsSync(at('usr/lib/hub-gateway')), existsSync(at('usr/bin/hub'))]).toEqual([
      false,
      false,
    ]);
    for (const kept of ['etc/hub/hub.config.json', 'var/lib/hub/hub.sqlite'])
      expect(existsSync(at(kept)), kept).toBe(true);

    await call('dpkg', '--purge', 'hub-gateway');
    for (const gone of ['etc/hub', 'var/lib/hub/hub.sqlite', 'var/lib/hub/.hub'])
      expect(existsSync(at(gone)), gone).toBe(false);
    expect(await readFile(at('var/lib/hub/homes/ada/notes'), 'utf8')).toBe('hers');
    const left = await call('find', '/etc/systemd', '/var/lib/systemd', '-name', '*hub*');
    expect(left).toBe('');
  });
});
