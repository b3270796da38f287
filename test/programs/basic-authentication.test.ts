import { execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, expect, test } from 'vitest';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { freePort } from '../support/free-port.ts';
import { pathOf, requires } from '../support/requires.ts';
import { untilState } from '../support/services.ts';
import { createTestHub, type TestHub, type TestHubConfig } from '../support/test-hub.ts';

const run = promisify(execFile);
const roles = [{ name: 'user', scopes: ['self', 'access:services'] }];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hub-basic-'));
  return () => rmSync(folder, { recursive: true, force: true });
});

/** Serves repositories by git's own CGI program (RFC 3875). */
async function startGitServer(root: string) {
  const server = createServer((req, res) => {
    const [path = '', query = ''] = (req.url ?? '').split('?');
    const child = spawn(pathOf('git-http-backend'), {
      env: {
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: '1',
        PATH_INFO: path.replace('/services/git', ''),
        QUERY_STRING: query,
        REQUEST_METHOD: req.method,
        CONTENT_TYPE: req.headers['content-type'] ?? '',
        HTTP_CONTENT_ENCODING: req.headers['content-encoding'] ?? '',
        REMOTE_USER: String(req.headers['x-hub-user'] ?? ''),
      },
    });
    req.pipe(child.stdin);
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.once('close', () => {
      const answer = Buffer.concat(chunks);
      const end = answer.indexOf('\r\n\r\n');
      const lines = answer.subarray(0, end).toString().split('\r\n');
      const headers = lines.map((line) => line.split(': ') as [string, string]);
      res.statusCode = Number.parseInt(new Map(headers).get('Status') ?? '200', 10);
      for (const [name, value] of headers) res.setHeader(name, value);
      res.end(answer.subarray(end + 4));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, [Symbol.dispose]: () => server.close() };
}

/** A hub with one guarded service, and the token of a user who may open it. */
async function startHub(name: string, url: string, config: TestHubConfig = {}) {
  const hub = await createTestHub({
    ...config,
    Hub: { load_roles: roles, services: [{ name, url, access: 'gateway' }] },
  });
  await untilState(hub, name, 'ready');
  await hub.logIn('alice');
  const made = await hub.api('/users/alice/tokens', 'admin-service-token', {
    method: 'POST',
    body: '{}',
  });
  const { token } = (await made.json()) as { token: string };
  return { hub, token };
}

function addressOf({ url }: TestHub, token: string, path: string): string {
  return url.replace('http://', `http://alice:${token}@`) + path;
}

test.skipIf(!requires('git-http-backend'))('git clones and pushes', async () => {
  const git = (directory: string, ...args: string[]) =>
    run('git', ['-C', directory, ...args], {
      env: {
        HOME: folder,
        PATH: '/usr/bin:/bin',
        GIT_TERMINAL_PROMPT: '0',
        ...Object.fromEntries(
          ['AUTHOR', 'COMMITTER'].flatMap((who) => [
            [`GIT_${who}_NAME`, 'Alice'],
            [`GIT_${who}_EMAIL`, 'alice@example.org'],
          ]),
        ),
      },
    });
  await git(folder, 'init', '--bare', '--initial-branch=main', 'course.git');
  await git(join(folder, 'course.git'), 'config', 'http.receivepack', 'true');
  using server = await startGitServer(folder);
  const { hub, token } = await startHub('git', server.url);
  await using _ = hub;

  const address = addressOf(hub, token, 'services/git/course.git');
  await git(folder, 'clone', address, 'mine');
  writeFileSync(join(folder, 'mine', 'notes.txt'), 'x'.repeat(2_000_000));
  await git(join(folder, 'mine'), 'add', '.');
  await git(join(folder, 'mine'), 'commit', '--message=Notes');
  await git(join(folder, 'mine'), 'push', 'origin', 'HEAD:main');
  await git(folder, 'clone', address, 'again');
  expect(readFileSync(join(folder, 'again', 'notes.txt'))).toHaveLength(2_000_000);

  const refused = git(folder, 'clone', addressOf(hub, 'nonsense', 'services/git/course.git'), 'no');
  await expect(refused).rejects.toThrow('Authentication failed');
});

/** A WebDAV server behind the gateway, and what is needed to reach it. */
async function startWebDav(root: string) {
  const port = await freePort();
  const server = spawn(pathOf('rclone'), [
    ...['serve', 'webdav', root, '--addr', `127.0.0.1:${port}`],
    ...['--baseurl', '/services/files', '--config', join(folder, 'none.conf')],
  ]);
  const { hub, token } = await startHub('files', `http://127.0.0.1:${port}`);
  return {
    hub,
    token,
    async [Symbol.asyncDispose]() {
      await hub[Symbol.asyncDispose]();
      server.kill();
    },
  };
}

/** Serves these bytes by path, and nothing else. */
function startFiles(
  files: () => ReadonlyMap<string, readonly [type: string, body: string | Buffer]>,
) {
  return startUpstream((req, res) => {
    const [type, body] = files().get(req.url ?? '') ?? [];
    res
      .writeHead(body === undefined ? 404 : 200, type === undefined ? {} : { 'content-type': type })
      .end(body);
  });
}

const wheel = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as wheel:
    info = 'greeting-1.0.dist-info/'
    wheel.writestr('greeting.py', 'words = "hello"')
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: greeting\\nVersion: 1.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')
`;

test.skipIf(!requires('python3-pip'))('pip installs from a package index', async () => {
  const file = 'greeting-1.0-py3-none-any.whl';
  await run(pathOf('python3-pip'), ['-c', wheel, join(folder, file)]);
  const prefix = '/services/pypi/simple/greeting/';
  await using server = await startFiles(
    () =>
      new Map([
        [prefix, ['text/html', `<!doctype html><a href="${file}">${file}</a>`]],
        [prefix + file, ['application/zip', readFileSync(join(folder, file))]],
      ]),
  );
  const { hub, token } = await startHub('pypi', server.url);
  await using _ = hub;
  const install = (password: string) =>
    run(
      pathOf('python3-pip'),
      [
        ...['-m', 'pip', '--isolated', '--no-input', '--disable-pip-version-check', 'install'],
        ...['--no-cache-dir', '--target', join(folder, 'installed'), '--index-url'],
        ...[addressOf(hub, password, 'services/pypi/simple/'), 'greeting'],
      ],
      { env: { HOME: folder, PATH: '/usr/bin:/bin' } },
    );
  await expect(install('nonsense')).rejects.toThrow();
  await install(token);
  expect(readFileSync(join(folder, 'installed', 'greeting.py'), 'utf8')).toContain('hello');
});

test('npm installs from a registry', async () => {
  const npm = (...args: string[]) =>
    run('npm', args, {
      cwd: folder,
      env: { HOME: folder, PATH: process.env['PATH'] ?? '', npm_config_update_notifier: 'false' },
    });
  mkdirSync(join(folder, 'greeting'));
  const description = { name: 'greeting', version: '1.0.0' };
  writeFileSync(join(folder, 'greeting', 'package.json'), JSON.stringify(description));
  await npm('pack', './greeting');
  writeFileSync(join(folder, 'package.json'), '{}');
  let registry = '';
  const file = 'greeting-1.0.0.tgz';
  await using server = await startFiles(() => {
    const dist = { tarball: `${registry}${file}` };
    const versions = { '1.0.0': { ...description, dist } };
    const found = { name: 'greeting', 'dist-tags': { latest: '1.0.0' }, versions };
    return new Map([
      ['/services/npm/greeting', ['application/json', JSON.stringify(found)]],
      [`/services/npm/${file}`, ['application/octet-stream', readFileSync(join(folder, file))]],
    ]);
  });
  const { hub, token } = await startHub('npm', server.url);
  await using _ = hub;
  registry = `${hub.url}services/npm/`;
  const install = async (password: string) => {
    const pair = Buffer.from(`alice:${password}`).toString('base64');
    const account = `${registry.replace('http:', '')}:_auth=${pair}`;
    writeFileSync(join(folder, '.npmrc'), `registry=${registry}\n${account}\naudit=false\n`);
    return await npm('install', 'greeting');
  };
  await expect(install('nonsense')).rejects.toThrow('E401');
  await install(token);
  expect(readFileSync(join(folder, 'node_modules/greeting/package.json'), 'utf8')).toContain(
    '1.0.0',
  );
});

test.skipIf(!requires('podman', 'docker-registry'))(
  'podman logs in to a registry of containers',
  async () => {
    const port = await freePort();
    const config = join(folder, 'registry.yml');
    writeFileSync(
      config,
      `version: 0.1\nstorage: { filesystem: { rootdirectory: ${folder}/images } }\nhttp: { addr: "127.0.0.1:${port}" }\n`,
    );
    const registry = spawn(pathOf('docker-registry'), ['serve', config]);
    const { hub, token } = await startHub('registry', `http://127.0.0.1:${port}`, {
      Proxy: {
        extra_routes: { '/v2/': { target: `http://127.0.0.1:${port}`, access: 'gateway' } },
      },
    });
    await using _ = hub;
    const logIn = (password: string) =>
      run(
        pathOf('podman'),
        [
          ...['login', '--tls-verify=false', `--authfile=${join(folder, 'logins.json')}`],
          ...['--username=alice', `--password=${password}`, new URL(hub.url).host],
        ],
        { env: { HOME: folder, PATH: process.env['PATH'] ?? '' } },
      );
    try {
      await expect(logIn('nonsense')).rejects.toThrow('invalid username/password');
      expect((await logIn(token)).stdout).toContain('Login Succeeded!');
    } finally {
      registry.kill();
    }
  },
);

test.skipIf(!requires('rclone'))('rclone copies to a WebDAV server and back', async () => {
  const root = join(folder, 'files');
  mkdirSync(root);
  await using world = await startWebDav(root);
  const config = join(folder, 'rclone.conf');
  const obscured = await run(pathOf('rclone'), ['obscure', world.token]);
  writeFileSync(
    config,
    `[hub]\ntype = webdav\nurl = ${world.hub.url}services/files/\nvendor = other\nuser = alice\npass = ${obscured.stdout}`,
  );
  const rclone = (...args: string[]) =>
    run(pathOf('rclone'), ['--config', config, '--retries', '1', ...args]);
  writeFileSync(join(folder, 'über uns.txt'), 'hello');
  await rclone('copyto', join(folder, 'über uns.txt'), 'hub:a folder/über uns.txt');
  expect((await rclone('cat', 'hub:a folder/über uns.txt')).stdout).toBe('hello');
  expect(readFileSync(join(root, 'a folder/über uns.txt'), 'utf8')).toBe('hello');
});

test.skipIf(!requires('cadaver', 'rclone'))('cadaver asks for a password and gets in', async () => {
  const root = join(folder, 'files');
  mkdirSync(root);
  writeFileSync(join(root, 'here.txt'), 'there');
  await using world = await startWebDav(root);
  const { hostname } = new URL(world.hub.url);
  writeFileSync(
    join(folder, '.netrc'),
    `machine ${hostname}\nlogin alice\npassword ${world.token}\n`,
    { mode: 0o600 },
  );
  const listed = run(pathOf('cadaver'), [`${world.hub.url}services/files/`], {
    env: { HOME: folder, PATH: '/usr/bin:/bin' },
  });
  listed.child.stdin?.end(`ls\nget here.txt ${join(folder, 'got.txt')}\nquit\n`);
  expect((await listed).stdout).toContain('here.txt');
  expect(readFileSync(join(folder, 'got.txt'), 'utf8')).toBe('there');
});
