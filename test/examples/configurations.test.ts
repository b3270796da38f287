import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { globSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { parse } from 'jsonc-parser';
import { describe, expect, test } from 'vitest';
import { usePostgres } from '../support/databases.ts';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { startHubProcess } from '../support/hub-process.ts';
import { hasPostgres } from '../support/postgres.ts';
import { hasRedis, useRedis } from '../support/redis.ts';
import { projectDirectory } from '../support/services.ts';
import { startHub, until } from '../support/test-hub.ts';

type Json = Record<string, unknown>;

/** A kubeconfig: a hub starts also while its cluster is away. */
const clusterThatIsAway = {
  clusters: [{ name: 'away', cluster: { server: 'http://127.0.0.1:9' } }],
  users: [{ name: 'hub', user: { token: 'a-token' } }],
  contexts: [{ name: 'away', context: { cluster: 'away', user: 'hub' } }],
  'current-context': 'away',
};

/** A configuration as a reader finds it. */
interface Shown {
  readonly where: string;
  readonly config: Json;
}

/** Blocks that a test of their own starts, with the files that their page has the reader write. */
const startedRemotely =
  /"authenticator_class": "badges"|"class": "nice"|"hooks": \["scratch"\]|"certificates": \[|"acme": \{/;
/** Sections begin with a capital; other JSON that a page shows is no configuration. */
const sectionName = /^(?:\$schema|[A-Z].*)$/;

const shown: Shown[] = [
  ...['hub.config.example.json', 'examples/hub.config.team.json'].map((where) => ({
    where,
    config: read(where),
  })),
  ...globSync(['README.md', 'docs/**/*.md', 'examples/**/*.md'], {
    cwd: projectDirectory,
    exclude: ['docs/reference/**'],
  }).flatMap(configurationsOf),
];

describe.skipIf(!hasPostgres() || !hasRedis())('every configuration that is shown', () => {
  const cluster = usePostgres();
  const redis = useRedis();

  test('is found', () => {
    expect(shown.length).toBeGreaterThan(30);
  });

  test.concurrent.for(shown)(
    'starts a hub from an empty folder: $where',
    async ({ where, config }) => {
      const directory = await mkdtemp(join(tmpdir(), 'hub-shown-'));
      try {
        const { publicUrl, environment, socket } = await prepare(directory, config, {
          createDatabase: cluster().createDatabase,
          keyv_url: redis().url,
        });
        const start = needsProgram(where, config) ? startProgram : startHere;
        await using hub = await start(directory, environment);
        await using _ = socket === undefined ? undefined : await forwardTo(socket, publicUrl);
        expect((await fetch(`${publicUrl}hub/health`)).status).toBe(200);
        const loginUrl = `${publicUrl}hub/login`;
        const browser = new FakeBrowser();
        const host = hostOf(config);
        const page = await (host === undefined
          ? browser.open(loginUrl)
          : browser.request(loginUrl, { headers: { host } }));
        expect([200, 401], page.body).toContain(page.status);
        for (const name of servicesOfExamples(config)) {
          await until(
            () => hub.logged('service is ready').some(({ service }) => service === name),
            `the example ${name} is ready`,
          );
        }
        await hub.stop();
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    },
  );
});

/** A hub that was started with `hub.config.json` of a folder. */
interface StartedHub extends AsyncDisposable {
  /** Lines of the log with this message. */
  logged(message: string): Record<string, unknown>[];
  /** Ends it with its gateways, and fails when it does not end as it should. */
  stop(): Promise<void>;
}

/**
 * Whether a configuration concerns the process itself, such as its log. What most readers begin with is
 * started as they start it.
 */
function needsProgram(where: string, config: Json): boolean {
  const hub = (config['Hub'] ?? {}) as Json;
  return (
    !/^(?:docs|examples)\//.test(where) ||
    'KubernetesSpawner' in config ||
    Object.keys(hub).some((name) => name.startsWith('log_'))
  );
}

async function startProgram(
  directory: string,
  environment: Readonly<Record<string, string>>,
): Promise<StartedHub> {
  const hub = await startHubProcess(['start'], { cwd: directory, env: environment });
  return {
    logged: (message) => hub.logged(RegExp(`^${message}$`)),
    async stop() {
      // Gateways outlive a hub that gets SIGTERM, for a time.
      hub.signal('SIGINT');
      expect(await hub.exited).toBe(0);
    },
    [Symbol.asyncDispose]: () => hub[Symbol.asyncDispose](),
  };
}

/** A process of its own would take most of the time of a start. */
async function startHere(
  directory: string,
  environment: Readonly<Record<string, string>>,
): Promise<StartedHub> {
  const logLines: Record<string, unknown>[] = [];
  const hub = await startHub(join(directory, 'hub.config.json'), {
    environment: { ...process.env, ...environment },
    logLines,
  });
  let isStopped = false;
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    hub.endGateways();
    await hub[Symbol.asyncDispose]();
  };
  return {
    logged: (message) => logLines.filter(({ msg }) => msg === message),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/**
 * The configurations of a page. One that does not begin with the name of the file shows only what
 * changes in the one before it.
 */
function configurationsOf(page: string): Shown[] {
  const blocks = readFileSync(join(projectDirectory, page), 'utf8').matchAll(
    /^```jsonc?\n(?<text>\{[\s\S]*?|\/\/ hub\.config\.json[\s\S]*?)^```$/gm,
  );
  let whole: Json = {};
  return [...blocks].flatMap(({ groups }, index) => {
    const text = groups?.['text'] ?? '';
    if (startedRemotely.test(text)) return [];
    const block = parse(text) as Json;
    if (!Object.keys(block).every((name) => sectionName.test(name))) return [];
    const isWhole = text.startsWith('//');
    if (isWhole) whole = block;
    return [{ where: `${page}, ${index + 1}`, config: isWhole ? block : merged(whole, block) }];
  });
}

function merged(under: Json, over: Json): Json {
  const sections = Object.entries(over).map(([name, section]) => {
    const former = under[name];
    return [name, isObject(section) && isObject(former) ? { ...former, ...section } : section];
  });
  return { ...under, ...(Object.fromEntries(sections) as Json) };
}

/** Writes the configuration with free ports and what it refers to: secrets, databases, examples. */
async function prepare(
  directory: string,
  shownConfig: Json,
  storage: { readonly createDatabase: () => Promise<string>; readonly keyv_url: string },
) {
  const config = structuredClone(shownConfig);
  const environment: Record<string, string> = {};
  const ports = new Map<string, number>();
  const portOf = async (former: string) => {
    const port = ports.get(former) ?? (await freePort());
    ports.set(former, port);
    return String(port);
  };

  async function visit(value: unknown): Promise<void> {
    if (!isObject(value) && !Array.isArray(value)) return;
    for (const [name, entry] of Object.entries(value)) {
      if (isObject(entry) && typeof entry['env'] === 'string') {
        environment[entry['env']] =
          name === 'database_url'
            ? await storage.createDatabase()
            : randomBytes(32).toString('hex');
      } else if (isObject(entry) && typeof entry['file'] === 'string') {
        // Nothing is written outside the folder.
        const name = join('secrets', basename(entry['file']));
        entry['file'] = name;
        const file = join(directory, name);
        await mkdir(dirname(file), { recursive: true });
        await writeFile(file, randomBytes(32).toString('hex'), { mode: 0o600 });
      }
      await visit(entry);
    }
    if (isObject(value) && typeof value['url'] === 'string' && 'command' in value) {
      const url = new URL(value['url']);
      url.port = await portOf(url.port);
      value['url'] = url.origin;
    }
  }
  await visit(config);

  const hub = (config['Hub'] ?? {}) as Json;
  const shownUrl = String(hub['bind_url'] ?? 'http://127.0.0.1:8000/');
  const socket = shownUrl.startsWith('unix:') ? join(directory, 'hub.sock') : undefined;
  const bindUrl = new URL(socket === undefined ? shownUrl : 'http://127.0.0.1:8000/');
  bindUrl.port = await portOf('public');
  config['Hub'] = {
    ...hub,
    bind_url: socket === undefined ? bindUrl.href : `unix://${socket}`,
    hub_bind_url: `http://127.0.0.1:${await portOf('internal')}`,
    ...('keyv_url' in hub && { keyv_url: storage.keyv_url }),
  };
  await writeFile(join(directory, 'hub.config.json'), JSON.stringify(config));
  if ('KubernetesSpawner' in config) {
    environment['KUBECONFIG'] = join(directory, 'kubeconfig.json');
    await writeFile(environment['KUBECONFIG'], JSON.stringify(clusterThatIsAway));
  }
  if (JSON.stringify(config).includes('examples/')) {
    await symlink(join(projectDirectory, 'examples'), join(directory, 'examples'));
  }
  return { publicUrl: bindUrl.href, environment, socket };
}

/** The host name that a hub with several of them must be asked by. */
function hostOf(config: Json): string | undefined {
  const hub = (config['Hub'] ?? {}) as Json;
  return 'subdomain_host' in hub ? new URL(String(hub['public_url'])).host : undefined;
}

/** Stands in for the proxy in front of a socket: passes bytes on and nothing else. */
async function forwardTo(path: string, url: string): Promise<AsyncDisposable> {
  const forwarder = createServer((client) => {
    const upstream = connect(path);
    client.on('error', () => upstream.destroy()).pipe(upstream);
    upstream.on('error', () => client.destroy()).pipe(client);
  });
  await once(forwarder.listen(Number(new URL(url).port), '127.0.0.1'), 'listening');
  return {
    async [Symbol.asyncDispose]() {
      forwarder.close();
    },
  };
}

function servicesOfExamples(config: Json): string[] {
  const hub = (config['Hub'] ?? {}) as { services?: { name: string; command?: string[] }[] };
  return (hub.services ?? [])
    .filter(({ command }) => command?.some((word) => word.includes('examples/')))
    .map(({ name }) => name);
}

function read(file: string): Json {
  return parse(readFileSync(join(projectDirectory, file), 'utf8')) as Json;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
