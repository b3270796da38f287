import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { shellScripts } from '../src/entrances/cli/completion-scripts.ts';
import { initConfigText } from '../src/entrances/cli/init-config.ts';
import { arenas, v8Options } from '../src/spawning/processes/memory-settings.ts';
import { readJson } from './program.ts';
import { manPages } from './reference/man-pages.ts';
import { sizeOf } from './release-checks.ts';

const root = join(import.meta.dirname, '..');

/** Not what is for those who write programs and take the package from npm, nor what is for another C library. */
const isRun = (path: string) => !/^\.|^musl_|\.(?:d\.[cm]?ts|map)$/.test(basename(path));

/**
 * Writes a package for Debian to a folder, of the program that was built in `dist` with the Node.js and the packages
 * that it was tested with, and returns its path. The same sources make the same package. Needs dpkg-deb and git.
 */
export function writeDebianPackage({
  dist,
  folder,
  version,
  isQuick = false,
}: {
  readonly dist: string;
  readonly folder: string;
  readonly version: string;
  /** Whether the package may be larger. */
  readonly isQuick?: boolean;
}): string {
  const name = /^@([^/]+)/.exec(String(readJson(join(root, 'package.json'))['name']))?.[1] ?? 'hub';
  const lib = `/usr/lib/${name}`;
  const stage = mkdtempSync(join(tmpdir(), 'hub-debian-'));
  chmodSync(stage, 0o755);
  const at = (path: string) => {
    mkdirSync(dirname(join(stage, path)), { recursive: true });
    return join(stage, path);
  };
  const write = (path: string, content: string | Buffer, mode = 0o644) =>
    writeFileSync(at(path), content, { mode });
  const template = (file: string) =>
    read(`deploy/debian/${file}`).replaceAll(/@(\w+)@/g, (all, key: string) => values[key] ?? all);

  const seconds = execFileSync('git', ['log', '-1', '--format=%ct'], {
    cwd: root,
    encoding: 'utf8',
  });
  const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim();
  const values: Record<string, string> = {
    name,
    version,
    architecture,
    date: new Date(Number(seconds) * 1000).toUTCString().replace('GMT', '+0000'),
    license: read('LICENSE').trim(),
  };

  cpSync(dist, at(lib), { recursive: true, filter: isRun });
  cpSync(join(root, 'node_modules/node/bin/node'), at(`${lib}/bin/node`));
  const node = `node_modules/node/node_modules/node-linux-${process.arch}`;
  cpSync(join(root, node, 'LICENSE'), at(`${lib}/LICENSE.node`));
  const { packages } = readJson(join(dist, 'npm-shrinkwrap.json')) as { packages: object };
  for (const place of Object.keys(packages).filter((each) => each !== '')) {
    // Optional ones are there for this machine only.
    const from = join(root, place);
    if (existsSync(from)) cpSync(from, at(`${lib}/${place}`), { recursive: true, filter: isRun });
  }
  write('usr/bin/hub', template('program'), 0o755);
  symlinkSync('hub', at('usr/bin/hub-singleuser'));

  const answers = {
    title: 'Hub',
    url: new URL('http://127.0.0.1:8000/'),
    login: 'password',
    tls: 'proxy',
  };
  const settings = { tlsSettings: {}, loginSettings: {}, admins: [], server: 'none' };
  const schema = `${lib}/hub.schema.json`;
  write('etc/hub/hub.config.json', initConfigText({ ...answers, ...settings }, schema));
  write('lib/systemd/system/hub.service', unitOf(lib));
  write('lib/systemd/system/hub.socket', template('hub.socket'));
  write('lib/systemd/system/hub.service.d/hardening.conf', template('hardening.conf'));
  write(`usr/lib/sysusers.d/${name}.conf`, template('sysusers.conf'));
  write(`usr/lib/tmpfiles.d/${name}.conf`, template('tmpfiles.conf'));
  write('usr/share/bash-completion/completions/hub', shellScripts.bash);
  write('usr/share/zsh/vendor-completions/_hub', shellScripts.zsh);
  write('usr/share/fish/vendor_completions.d/hub.fish', shellScripts.fish);
  for (const [page, text] of manPages(version)) {
    write(`usr/share/man/man1/${page}.gz`, gzipSync(text, { level: 9 }));
  }
  const documents = `usr/share/doc/${name}`;
  write(`${documents}/copyright`, template('copyright'));
  write(`${documents}/changelog.gz`, gzipSync(template('changelog'), { level: 9 }));
  write(`${documents}/examples/accounts.conf`, read('deploy/accounts.conf'));
  write(`usr/share/lintian/overrides/${name}`, template('lintian-overrides'));

  values['size'] = String(Math.ceil(sizeOf(stage) / 1024));
  write('DEBIAN/control', template('control'));
  write('DEBIAN/conffiles', template('conffiles'));
  for (const script of ['postinst', 'prerm', 'postrm']) {
    write(`DEBIAN/${script}`, template(script), 0o755);
  }
  const file = join(folder, `${name}_${version}_${architecture}.deb`);
  const compression = isQuick ? ['-Zgzip', '-z1'] : ['-Zxz'];
  const build = ['--root-owner-group', ...compression, '--build', stage, file];
  const env = { ...process.env, SOURCE_DATE_EPOCH: seconds.trim() };
  execFileSync('dpkg-deb', build, { env, stdio: ['ignore', 'ignore', 'inherit'] });
  rmSync(stage, { recursive: true });
  return file;
}

/**
 * The unit of a checkout, for the package in `lib`. A process that passed sockets come to cannot begin once more, so it
 * begins under the settings of its memory at once.
 */
function unitOf(lib: string): string {
  const checkout = '/opt/hub/node_modules/.bin/node /opt/hub/src/main.ts';
  const memory = Object.entries(arenas).map(([name, value]) => `Environment=${name}=${value}\n`);
  return read('deploy/hub.service')
    .replace(/^(?:#.*\n)+/, '')
    .replace(/^Documentation=.*/m, 'Documentation=man:hub(1)')
    .replace(/^Environment=/m, `${memory.join('')}Environment=`)
    .replace(`${checkout} start`, `${lib}/bin/node ${v8Options.join(' ')} ${lib}/src/main.js start`)
    .replaceAll(checkout, `${lib}/bin/node ${lib}/src/main.js`)
    .replaceAll('/opt/hub/node_modules/.bin', `${lib}/bin`);
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8');
}
