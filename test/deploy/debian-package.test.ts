import { execFile, spawn } from 'node:child_process';
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
const isThere = requires('root', 'mmdebstrap', 'lintian', 'systemd', 'unshare');

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
    const dist = dirname(dirname(programFile('main')));
    packages = ['0.1.0', '0.1.1'].map((version) =>
      writeDebianPackage({ dist, folder, version, isQuick: true }),
    );
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
  const install = (index: number) =>
    call('dpkg', '--install', join('/tmp', basename(packages[index] ?? '')));
  const asHub = (...command: string[]) => ['runuser', '-u', 'hub', '--', ...command];
  const config = '/var/lib/hub/hub.config.json';

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

  test('runs a hub on nothing but what it brings', async () => {
    const text = await readFile(at('etc/hub/hub.config.json'), 'utf8');
    const [open, internal] = [await freePort(), await freePort()];
    const edited = text.replace(':8000/', `:${open}/`).replace(':8080', `:${internal}`);
    await writeFile(at('etc/hub/hub.config.json'), edited);
    const hub = spawn(pathOf('unshare'), inside(...asHub('hub', 'start', '--config', config)));
    await until(async () => {
      const answer = await fetch(`http://127.0.0.1:${open}/hub/ready`).catch(() => undefined);
      return answer?.status === 200;
    }, 'the hub is ready');
    hub.kill('SIGKILL');
    expect(await modeOf('var/lib/hub/hub.sqlite')).toBe('600');
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
