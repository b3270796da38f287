import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../../test/support/free-port.ts';
import { type HubProcess, startHubProcess } from '../../test/support/hub-process.ts';
import { endProcessesIn, until } from '../../test/support/test-hub.ts';

const project = join(import.meta.dirname, '..', '..');
const main = join(project, 'src', 'main.ts');
/** How fast the hub's time goes by. */
const clockSpeed = 10;
export const password = 'seven grey geese in line';

/** A hub that runs, and what its pages show. */
export interface World extends AsyncDisposable {
  /** As browsers reach it, ends in a slash. */
  readonly url: string;
  /** Where that host really is. */
  readonly port: number;
  /** The link that makes the first administrator. */
  readonly setUpUrl: string;
  /** Adds people, groups, servers and services, once there is an administrator. */
  populate(): Promise<void>;
  /** Visits servers and services for a while, so that there is something to plot. */
  visit(seconds: number): Promise<void>;
}

const people = [
  ['ada', 'Ada Lovelace'],
  ['grace', 'Grace Hopper'],
  ['linus', 'Linus Pauling'],
  ['emmy', 'Emmy Noether'],
  ['kurt', 'Kurt Gödel'],
  ['mary', 'Mary Somerville'],
  ['leonhard', 'Leonhard Euler'],
  ['sofia', 'Sofia Kovalevskaya'],
  ['srinivasa', 'Srinivasa Ramanujan'],
  ['hypatia', 'Hypatia'],
  ['evariste', 'Évariste Galois'],
] as const;

const groups = {
  teaching: ['grace', 'emmy', 'mary'],
  'data-science': ['ada', 'linus', 'sofia', 'kurt'],
};

function configOf(ports: readonly number[]): object {
  const [publicPort, internalPort, wikiPort, whoPort] = ports;
  const workspace = 'node {project}/examples/workspace/workspace.ts {socket}';
  const start = workspace.replace('{project}', project);
  const shell = (script: string) => ['sh', '-c', script];
  const app = (name: string) => ['node', join(project, 'examples', name, `${name}.ts`)];
  return {
    Hub: {
      title: 'Hub',
      bind_url: `http://127.0.0.1:${publicPort}/`,
      public_url: 'http://hub.example.org/',
      hub_bind_url: `http://127.0.0.1:${internalPort}`,
      instance_name: 'hub-a',
      authenticator_class: 'password',
      allow_named_servers: true,
      services: [
        {
          name: 'wiki',
          url: `http://127.0.0.1:${wikiPort}`,
          command: app('plain-app'),
          access: 'gateway',
          info: { title: 'Wiki', description: 'What we know, and how we work.', group: 'Together' },
        },
        {
          name: 'whoami',
          url: `http://127.0.0.1:${whoPort}`,
          command: app('whoami'),
          info: { title: 'Who am I', description: 'What an app learns of you.', group: 'Examples' },
        },
        {
          name: 'nightly-report',
          command: shell(
            'n=1; while :; do echo "Read table $n of 12"; sleep 1; n=$((n % 12 + 1)); test $n = 1 && echo "The report of $(date +%F) is written."; done',
          ),
          info: { title: 'Nightly report' },
        },
        {
          name: 'gallery',
          url: 'http://127.0.0.1:9',
          command: shell('echo "cannot open /data/gallery.db: no such file" >&2; sleep 1; exit 1'),
          access: 'gateway',
          info: {
            title: 'Gallery',
            description: 'Pictures of the last excursion.',
            group: 'Together',
            contact: 'emmy@example.org',
          },
        },
      ],
      load_roles: [
        {
          name: 'user',
          scopes: ['self', 'access:services', 'shares!user', 'list:users', 'list:groups'],
        },
        {
          name: 'teaching',
          description: 'Open the servers of students',
          scopes: ['access:servers!group=data-science'],
          groups: ['teaching'],
        },
      ],
    },
    Spawner: {
      home_dir: 'homes/{username}',
      // By the clock of the hub.
      start_timeout: 60 * clockSpeed,
      http_timeout: 30 * clockSpeed,
      profiles: [
        {
          name: 'workspace',
          display_name: 'Workspace',
          description: 'Files, and nothing to wait for',
          cmd: start,
          default: true,
        },
        {
          name: 'course',
          display_name: 'Course material',
          description: 'Workspace with this week’s material',
          cmd: shell(
            `for n in 1 2 3 4 5; do echo "Fetching part $n of 5"; sleep 1; done; exec ${start}`,
          ),
        },
        {
          name: 'gpu',
          display_name: 'GPU',
          description: 'One GPU for a few hours',
          cmd: shell(
            'echo "Looking for a free GPU"; sleep 1; echo "gpu-0: driver 535 is older than 550, which this image needs" >&2; exit 1',
          ),
        },
      ],
    },
  };
}

/** Pages show its path, so it has the same one each time where it can. */
async function makeFolder(): Promise<string> {
  const wanted = join(tmpdir(), 'hub');
  if ((await mkdir(wanted, { recursive: true })) !== undefined) return wanted;
  return mkdtemp(join(tmpdir(), 'hub-'));
}

/** For the hub alone: plots show an hour, and few want to wait that long. */
function fastClock(): Readonly<Record<string, string>> {
  const [library] = globSync('/usr/lib/*/faketime/libfaketimeMT.so.1');
  if (library === undefined) throw new Error('libfaketime is missing: apt-get install libfaketime');
  return { LD_PRELOAD: library, FAKETIME: `+0 x${clockSpeed}` };
}

/** Starts a hub in a folder of its own; no one is an administrator yet. */
export async function startWorld(): Promise<World> {
  const directory = await makeFolder();
  const ports = [await freePort(), await freePort(), await freePort(), await freePort()];
  const port = ports[0] ?? 0;
  const here = `http://127.0.0.1:${port}/`;
  await writeFile(join(directory, 'hub.config.json'), JSON.stringify(configOf(ports)));
  const env = { ...process.env, NO_COLOR: '1' };
  const hub: HubProcess = await startHubProcess(['start'], {
    cwd: directory,
    env: { NO_COLOR: '1', ...fastClock() },
  });
  await until(() => hub.stdout().includes('/hub/set-up?'), 'there is a link');

  async function run(args: readonly string[], input = ''): Promise<string> {
    const running = promisify(execFile)(process.execPath, [main, ...args], { cwd: directory, env });
    running.child.stdin?.end(input);
    return (await running).stdout.trim();
  }
  let token = '';
  async function api(method: string, path: string, body?: unknown, as = token): Promise<Response> {
    const answer = await fetch(`${here}hub/api${path}`, {
      method,
      headers: {
        authorization: `token ${as}`,
        'content-type': 'application/json',
        host: 'hub.example.org',
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    return answer;
  }
  const [, setUpPath = ''] = /(\/hub\/set-up\?\S+)/.exec(hub.stdout()) ?? [];

  return {
    url: 'http://hub.example.org/',
    port,
    setUpUrl: `http://hub.example.org${setUpPath}`,

    async populate() {
      token = await run(['token', 'ada', '--note', 'administration']);
      const others = people.slice(1).map(([name]) => name);
      for (const name of others.slice(0, 2)) {
        await run(['user', 'add', name, '--password-stdin'], `${password}\n`);
      }
      await api('POST', '/users', { usernames: others.slice(2) });
      for (const [name, displayName] of people) {
        await api('PATCH', `/users/${name}`, { user_info: { display_name: displayName } });
      }
      for (const [group, users] of Object.entries(groups)) {
        // That of a role is there already.
        if (group !== 'teaching') await api('POST', `/groups/${group}`);
        await api('POST', `/groups/${group}/users`, { users });
      }
      await api('POST', '/users/grace/tokens', {
        note: 'course material',
        expires_in: 30 * 86_400,
      });
      await api('POST', '/users/grace/tokens', {
        note: 'marks',
        scopes: ['read:users!user=grace'],
      });
      for (const name of ['grace', 'emmy', 'sofia', 'kurt', 'leonhard']) {
        await mkdir(join(directory, 'homes', name), { recursive: true });
        for (let week = 1; week <= 12; week += 1) {
          await writeFile(join(directory, 'homes', name, `week-${week}.md`), `# Week ${week}\n`);
        }
        await api('POST', `/users/${name}/server`);
      }
      await api('POST', '/users/emmy/servers/exam', { profile: 'workspace' });
      await api('POST', '/shares/grace/', { user: 'linus' });
      await api('POST', '/shares/grace/', { group: 'teaching' });
    },

    async visit(seconds) {
      const until = performance.now() + seconds * 1000;
      const paths = [
        'user/grace/',
        'user/emmy/',
        'user/sofia/',
        'services/wiki/',
        'services/whoami/',
      ];
      for (let round = 0; performance.now() < until; round += 1) {
        const count = Math.round(6 + 5 * Math.sin(round / 25) + 3 * Math.sin(round / 7));
        await Promise.all(
          Array.from({ length: Math.max(1, count) }, async (_, index) => {
            const path = paths[(round + index) % paths.length] ?? '';
            const answer = await fetch(here + path, {
              headers: { authorization: `token ${token}` },
            });
            await answer.arrayBuffer();
          }),
        );
        await new Promise((resolve) => setTimeout(resolve, 400));
      }
    },

    async [Symbol.asyncDispose]() {
      await hub[Symbol.asyncDispose]();
      await endProcessesIn(directory);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
