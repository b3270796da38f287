import { execFile } from 'node:child_process';
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
import { hasDocker, importImage, type TestEngine } from './docker-engine.ts';
import { hasHaproxy } from './haproxy.ts';
import { copyHubInto, imageInstruction } from './hub-image.ts';
import { hasPostgres } from './postgres.ts';
import { hasRedis } from './redis.ts';
import { pathOf, requires } from './requires.ts';
import { projectDirectory } from './services.ts';

/** Folders of this machine's programs, which images of the tests have instead of their own. */
export const programFolders: readonly string[] = [
  '/usr/bin',
  '/usr/sbin',
  '/usr/lib',
  '/usr/lib64',
  '/usr/share',
].filter((folder) => existsSync(folder));

/** Whether everything is installed that stands in for images which cannot be pulled; see requires. */
export function hasCompose(): boolean {
  return requires('docker-compose') && hasDocker() && hasHaproxy() && hasPostgres() && hasRedis();
}

interface Image {
  readonly name: string;
  /** Files by their path, which anyone may execute. */
  readonly files?: Readonly<Record<string, string>>;
  /** Folders that everyone may write to. */
  readonly folders?: readonly string[];
  readonly changes: readonly string[];
}

const path = 'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin:/usr/lib/postgresql/15/bin';

const postgresEntrypoint = `#!/bin/sh
set -e
export PGDATA=/var/lib/postgresql/data PGUSER="$POSTGRES_USER"
if [ "$(id -u)" = 0 ]; then
  chown postgres "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --clear-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  echo "$POSTGRES_PASSWORD" >/tmp/password
  initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth-local=trust --auth-host=scram-sha-256
  echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"
  pg_ctl --wait --options="-c listen_addresses=''" start
  createdb "$POSTGRES_DB"
  pg_ctl --wait stop
fi
exec postgres -c listen_addresses='*'
`;

const images: readonly Image[] = [
  {
    name: 'postgres:17',
    files: { '/usr/local/bin/docker-entrypoint.sh': postgresEntrypoint },
    folders: ['/var/lib/postgresql/data', '/var/run/postgresql'],
    changes: ['ENTRYPOINT ["docker-entrypoint.sh"]', path],
  },
  {
    // Redis believes that it is meant for one machine when it has no configuration.
    name: 'redis:7',
    files: {
      '/usr/local/bin/docker-entrypoint.sh':
        '#!/bin/sh\nshift\nexec redis-server --protected-mode no "$@"\n',
    },
    folders: ['/data'],
    changes: ['ENTRYPOINT ["docker-entrypoint.sh"]', 'WORKDIR /data', path],
  },
  {
    name: 'haproxy:3.0',
    folders: ['/usr/local/etc/haproxy'],
    changes: ['CMD ["haproxy", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]', path],
  },
  {
    name: 'quay.io/jupyter/base-notebook:latest',
    folders: ['/home/jovyan', '/home/jovyan/work'],
    changes: ['USER 1000:1000', 'WORKDIR /home/jovyan', 'ENV HOME=/home/jovyan', path],
  },
];

const accounts = [
  'root:x:0:0::/root:/bin/sh',
  'postgres:x:999:999::/:/bin/sh',
  'node:x:1000:1000::/:/bin/sh',
];

function createRoot(directory: string, { name, files = {}, folders = [] }: Image): string {
  const root = join(directory, name.replaceAll(/\W/g, '-'));
  const at = (path: string) => join(root, path);
  for (const folder of [...programFolders, '/etc', '/tmp', '/usr/local/bin']) {
    mkdirSync(at(folder), { recursive: true });
  }
  for (const link of ['bin', 'sbin', 'lib', 'lib64']) symlinkSync(`usr/${link}`, at(link));
  writeFileSync(at('etc/passwd'), `${accounts.join('\n')}\n`);
  writeFileSync(at('etc/group'), 'root:x:0:\npostgres:x:999:\nnode:x:1000:\n');
  chmodSync(at('tmp'), 0o1777);
  for (const folder of folders) {
    mkdirSync(at(folder), { recursive: true });
    chmodSync(at(folder), 0o777);
  }
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(at(dirname(file)), { recursive: true });
    writeFileSync(at(file), content, { mode: 0o755 });
  }
  return root;
}

/** Makes the images that the compose files name, of this machine's programs and of the sources, once for an engine. */
async function importImages({ docker }: TestEngine, directory: string): Promise<void> {
  if ((await docker.listImages({ filters: { reference: ['hub:latest'] } })).length > 0) return;
  for (const image of images) {
    await importImage(docker, createRoot(directory, image), image.name, image.changes);
  }
  const hub: Image = {
    name: 'hub:latest',
    folders: ['/srv/hub'],
    changes: [
      ...['USER', 'WORKDIR', 'CMD'].map((name) => `${name} ${imageInstruction(name)}`),
      path,
    ],
  };
  const root = createRoot(directory, hub);
  copyHubInto(join(root, 'opt/hub'));
  mkdirSync(join(root, 'opt/hub/node_modules'));
  symlinkSync('/opt/hub/node_modules/node/bin/node', join(root, 'usr/local/bin/node'));
  await importImage(docker, root, hub.name, hub.changes);
}

export interface ComposeFolder extends AsyncDisposable {
  /** Runs commands as a reader does who stands in the folder of the sources. */
  run(commands: string): Promise<string>;
}

interface Override {
  readonly services: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly networks?: Readonly<Record<string, unknown>>;
}

/**
 * Makes a folder like that of the sources, in which `docker compose` is docker-compose with an engine, and its images
 * are made of this machine's programs. Disposing of it removes all containers and networks of the engine.
 */
export async function createComposeFolder(
  engine: TestEngine,
  options: {
    /** Compose files, such as `compose.yaml`, each of which changes what is in those before. */
    readonly files: readonly string[];
    /** The configuration that they mount. */
    readonly config: string;
    /** Its services whose image is that of the hub, and all others. */
    readonly services: Readonly<Record<'ofHub' | 'others', readonly string[]>>;
    /** Changes these files for this machine. */
    readonly adapt: (text: string) => string;
    /** One more compose file of the test. */
    readonly override?: Override;
  },
): Promise<ComposeFolder> {
  const { files, config, services, override } = options;
  const { docker } = engine;
  const directory = mkdtempSync(join(tmpdir(), 'hub-compose-'));
  chmodSync(directory, 0o755);
  await importImages(engine, directory);
  const deploy = join(directory, 'deploy');
  cpSync(join(projectDirectory, 'deploy'), deploy, { recursive: true });
  for (const name of [...files, config]) {
    writeFileSync(join(deploy, name), options.adapt(readFileSync(join(deploy, name), 'utf8')));
  }

  const volumes = programFolders.map((folder) => `${folder}:${folder}:ro`);
  const ofHub = [...volumes, `${join(projectDirectory, 'node_modules')}:/opt/hub/node_modules:ro`];
  const programs: Override = {
    services: Object.fromEntries([
      ...services.ofHub.map((name) => [name, { volumes: ofHub }]),
      ...services.others.map((name) => [name, { volumes }]),
    ]),
  };
  const overrides = [programs, ...(override === undefined ? [] : [override])].map((each, index) => {
    const file = join(deploy, `override-${index}.yaml`);
    writeFileSync(file, JSON.stringify(each));
    return file;
  });
  const given = files.map((file) => `--file deploy/${file}`).join(' ');
  const shim = `#!/bin/sh
# docker-compose itself runs the other commands of docker.
[ "$1" = compose ] || exec /usr/bin/docker "$@"
case "$* " in "compose ${given} "*) ;; *) exit 64 ;; esac
shift ${1 + 2 * files.length}
for word; do shift; [ "$word" = --build ] && word=--no-build; set -- "$@" "$word"; done
exec ${pathOf('docker-compose')} ${given} ${overrides.map((file) => `--file ${file}`).join(' ')} "$@"
`;
  mkdirSync(join(directory, 'bin'));
  writeFileSync(join(directory, 'bin/docker'), shim, { mode: 0o755 });

  const socket = new URL(engine.host).pathname;
  const env = {
    PATH: `${join(directory, 'bin')}:/usr/bin:/bin`,
    DOCKER_HOST: engine.host,
    DOCKER_SOCKET: socket,
    // Volumes of two folders are not the same ones.
    COMPOSE_PROJECT_NAME: basename(directory).toLowerCase(),
  };
  return {
    run: (commands) =>
      new Promise<string>((resolve, reject) => {
        const script = commands.replaceAll('/var/run/docker.sock', socket);
        execFile('sh', ['-ec', script], { cwd: directory, env }, (error, stdout, stderr) => {
          if (error === null) resolve(stdout);
          else reject(new Error(`${commands}: ${stdout}${stderr}`));
        });
      }),
    async [Symbol.asyncDispose]() {
      for (const { Id } of await docker.listContainers({ all: true })) {
        await docker.getContainer(Id).remove({ force: true, v: true });
      }
      await docker.pruneNetworks();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
