import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { pathOf, requires } from './requires.ts';
import { until } from './test-hub.ts';

/** A registry of images on loopback that gives nothing without its password. */
export interface Registry extends AsyncDisposable {
  /** Host and port, as names of images begin. */
  readonly host: string;
  readonly username: string;
  readonly password: string;
  /** Puts a manifest list that has an image for one foreign architecture only. */
  putForeign(repository: string, tag: string): Promise<void>;
}

/** Whether the registry of Debian is installed; see requires. */
export function hasRegistry(): boolean {
  return requires('docker-registry', 'htpasswd');
}

/** Starts a registry. Engines take one on loopback without TLS. */
export async function startRegistry(): Promise<Registry> {
  const directory = mkdtempSync(join(tmpdir(), 'hub-registry-'));
  const at = (name: string) => join(directory, name);
  const [username, password] = ['lab', 'the-hub-may-pull'];
  const host = `127.0.0.1:${await freePort()}`;
  mkdirSync(at('data'));
  writeFileSync(at('users'), execFileSync(pathOf('htpasswd'), ['-Bbn', username, password]));
  writeFileSync(
    at('config.yml'),
    JSON.stringify({
      version: 0.1,
      log: { level: 'error', accesslog: { disabled: true } },
      storage: { filesystem: { rootdirectory: at('data') } },
      http: { addr: host },
      auth: { htpasswd: { realm: 'lab', path: at('users') } },
    }),
  );
  const child = spawn(pathOf('docker-registry'), ['serve', at('config.yml')], { stdio: 'ignore' });
  const exited = once(child, 'exit');
  const endWithProcess = () => child.kill('SIGKILL');
  process.once('exit', endWithProcess);
  const headers = {
    authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`,
  };
  await until(
    () =>
      fetch(`http://${host}/v2/`, { headers }).then(
        ({ ok }) => ok,
        () => false,
      ),
    'the registry answers',
  );
  return {
    host,
    username,
    password,

    async putForeign(repository, tag) {
      const type = 'application/vnd.docker.distribution.manifest.v2+json';
      const url = `http://${host}/v2/${repository}/manifests/${tag}`;
      const answer = await fetch(url, { headers: { ...headers, accept: type } });
      const digest = answer.headers.get('docker-content-digest');
      const size = (await answer.arrayBuffer()).byteLength;
      const architecture = process.arch === 'arm64' ? 'amd64' : 'arm64';
      const mediaType = 'application/vnd.docker.distribution.manifest.list.v2+json';
      const list = {
        schemaVersion: 2,
        mediaType,
        manifests: [{ mediaType: type, size, digest, platform: { architecture, os: 'linux' } }],
      };
      const put = await fetch(`http://${host}/v2/${repository}/manifests/foreign`, {
        method: 'PUT',
        headers: { ...headers, 'content-type': mediaType },
        body: JSON.stringify(list),
      });
      if (put.status !== 201) throw new Error(`${put.status} ${await put.text()}`);
    },

    async [Symbol.asyncDispose]() {
      process.off('exit', endWithProcess);
      child.kill('SIGTERM');
      await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
