import { execFile } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
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

/** Makes the images that the compose files name, of this machine's programs and of the sources. */
async function importImages({ docker }: TestEngine, directory: string): Promise<void> {
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

export interface ComposeFolder {
  /** Runs commands as a reader does who stands in the folder of the sources. */
  run(commands: string): Promise<string>;
}

/**
 * Makes a folder like that of the sources, in which `docker compose` is docker-compose with an engine, and its images
 * are made of this machine's programs.
 */
export async function createComposeFolder(
  engine: TestEngine,
  options: {
    readonly directory: string;
    /** The compose file, such as `compose.yaml`. */
    readonly file: string;
    /** Its services whose image is that of the hub, and all others. */
    readonly services: Readonly<Record<'ofHub' | 'others', readonly string[]>>;
    /** Changes files of `deploy/` for this machine. */
    readonly adapt: (text: string) => string;
  },
): Promise<ComposeFolder> {
  const { directory, file, services } = options;
  await importImages(engine, directory);
  const deploy = join(directory, 'deploy');
  cpSync(join(projectDirectory, 'deploy'), deploy, { recursive: true });
  for (const name of [file, file.replace('.yaml', '.config.json')]) {
    writeFileSync(join(deploy, name), options.adapt(readFileSync(join(deploy, name), 'utf8')));
  }

  const volumes = programFolders.map((folder) => `${folder}:${folder}:ro`);
  const ofHub = [...volumes, `${join(projectDirectory, 'node_modules')}:/opt/hub/node_modules:ro`];
  const override = {
    services: Object.fromEntries([
      ...services.ofHub.map((name) => [name, { volumes: ofHub }]),
      ...services.others.map((name) => [name, { volumes }]),
    ]),
  };
  const overrideFile = join(deploy, 'override.yaml');
  writeFileSync(overrideFile, JSON.stringify(override));
  const shim = `#!/bin/sh
# docker-compose itself runs the other commands of docker.
[ "$1" = compose ] || exec /usr/bin/docker "$@"
[ "$1 $2 $3" = "compose --file deploy/${file}" ] || exit 64
shift 3
for word; do shift; [ "$word" = --build ] && word=--no-build; set -- "$@" "$word"; done
exec ${pathOf('docker-compose')} --file deploy/${file} --file ${overrideFile} "$@"
`;
  mkdirSync(join(directory, 'bin'));
  writeFileSync(join(directory, 'bin/docker'), shim, { mode: 0o755 });

  const env = {
    PATH: `${join(directory, 'bin')}:/usr/bin:/bin`,
    DOCKER_HOST: engine.host,
    DOCKER_SOCKET: new URL(engine.host).pathname,
  };
  return {
    run: (commands) =>
      new Promise<string>((resolve, reject) => {
        execFile('sh', ['-ec', commands], { cwd: directory, env }, (error, stdout, stderr) => {
          if (error === null) resolve(stdout);
          else reject(new Error(`${commands}: ${stdout}${stderr}`));
        });
      }),
  };
}
