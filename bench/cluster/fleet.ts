import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { freePort } from '../../test/support/free-port.ts';
import { startHaproxy } from '../../test/support/haproxy.ts';
import {
  createHubFolder,
  type HubFolder,
  type HubProcess,
  spawnHubProcess,
} from '../../test/support/hub-process.ts';
import { type PostgresCluster, startPostgres } from '../../test/support/postgres.ts';
import { type RedisServer, startRedis } from '../../test/support/redis.ts';
import { isAlive } from '../../test/support/server-hub.ts';
import { startSilentRelay } from '../../test/support/silent-relay.ts';
import { until } from '../../test/support/test-hub.ts';
import { processesOf, sendSignal } from '../chaos/processes.ts';

const programs = join(import.meta.dirname, '..', '..', 'fixtures', 'apps');
const unrulyApp = join(import.meta.dirname, '..', 'soak', 'unruly-app.ts');
const startMs = 60_000;
export const adminToken = 'admin-service-token';
export const gatewayToken = 'gateway-service-token';

/** A hub or a gateway that can be killed and started again. */
export interface Member extends AsyncDisposable {
  readonly name: string;
  readonly kind: 'hub' | 'gateway';
  readonly pid: number;
  /** Where it answers itself, past the balancer. Ends in a slash. */
  readonly url: string;
  /** Everything that it and its predecessors logged. */
  log(): string;
  /** Starts it and waits until it is ready. */
  start(): Promise<void>;
  /** Ends it by a signal; resolves when the process is gone. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/** Hubs on one PostgreSQL and one Redis behind HAProxy, with gateways before them if wanted. */
export interface Fleet extends AsyncDisposable {
  /** The balancer that browsers use; ends in a slash. */
  readonly url: string;
  readonly apiUrl: string;
  readonly hubs: readonly Member[];
  readonly gateways: readonly Member[];
  readonly postgres: PostgresCluster;
  readonly databaseUrl: string;
  readonly redis: RedisServer;
  readonly serviceNames: readonly string[];
  /** Folders of all members: what works there belongs to the fleet. */
  readonly directories: readonly string[];
  api(path: string, init?: RequestInit): Promise<Response>;
  /** Lets no more bytes through on the connections on which hubs hear of changes; they stay open. */
  silenceFeeds(): void;
}

/** Starts everything and waits until it answers. */
export async function startFleet(options: {
  readonly hubs: number;
  readonly gateways: number;
  /** Managed services beside `app`, each a small web server. */
  readonly services?: number;
  /** Services that run elsewhere and log users in, as the configuration has them. */
  readonly clients?: readonly object[];
  readonly extraRoutes?: Readonly<Record<string, string>>;
  /** `Hub.gateways` of each hub. */
  readonly localGateways?: number;
  /** Whether users' servers speak WebSocket. */
  readonly serversEcho?: boolean;
  /** A web server that answers `ok`; one of Perl by default. */
  readonly serverCommand?: readonly string[];
  /** Whether `silenceFeeds` may be called. */
  readonly hasSilentFeeds?: boolean;
}): Promise<Fleet> {
  await using building = new AsyncDisposableStack();
  const postgres = building.use(await startPostgres());
  const redis = building.use(await startRedis());
  const databaseUrl = await postgres.createDatabase();
  const [frontPort, hubsPort] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${frontPort}/`;
  const cookieSecret = randomBytes(32).toString('hex');
  const serviceNames = [
    'app',
    ...Array.from({ length: options.services ?? 0 }, (_, index) => `small-${index}`),
  ];
  const ports = await Promise.all(serviceNames.map(() => freePort()));
  const services = serviceNames.map((name, index) => ({
    name,
    url: `http://127.0.0.1:${ports[index]}`,
    // Its name tells the copies of one service in the table of processes.
    command:
      name === 'app'
        ? [process.execPath, unrulyApp, String(ports[index]), `cluster-service=${name}`]
        : ['perl', join(programs, 'trivial.pl'), `cluster-service=${name}`],
    access: 'gateway',
  }));

  const relay =
    options.hasSilentFeeds === true ? building.use(await startSilentRelay(postgres)) : undefined;
  const hubDatabaseUrl = new URL(databaseUrl);
  if (relay !== undefined) hubDatabaseUrl.port = String(relay.port);

  const hubs: Member[] = [];
  const directories: string[] = [];
  for (let index = 0; index < options.hubs; index += 1) {
    const name = `hub-${index + 1}`;
    const folder = building.use(await createHubFolder());
    // Users' servers outlive their hub.
    building.defer(() => {
      for (const { pid } of processesOf(folder.directory)) sendSignal(pid, 'SIGKILL');
    });
    await folder.configure({
      Hub: {
        public_url: url,
        // PostgreSQL tells by it which hub asks.
        database_url: `${hubDatabaseUrl}?application_name=${name}`,
        keyv_url: redis.url,
        cookie_secret: cookieSecret,
        instance_name: name,
        instance_url: folder.apiUrl.replace(/hub\/api$/, ''),
        concurrent_spawn_limit: 0,
        gateways: options.localGateways ?? 0,
        load_roles: [
          { name: 'gateways', scopes: ['gateway'], services: ['gateways'] },
          { name: 'user', scopes: ['self', 'access:services'] },
        ],
        services: [
          ...services,
          { name: 'gateways', api_token: gatewayToken },
          ...(options.clients ?? []),
        ],
      },
      Spawner: {
        cmd:
          options.serversEcho === true
            ? [process.execPath, unrulyApp, '{port}']
            : (options.serverCommand ?? ['perl', join(programs, 'trivial.pl')]),
        access: 'gateway',
        poll_interval: 5,
      },
      Proxy: {
        extra_routes: { '/open/': `http://127.0.0.1:${ports[0]}`, ...options.extraRoutes },
        max_connections_per_address: 0,
      },
    });
    directories.push(folder.directory);
    hubs.push(
      building.use(createMember(name, 'hub', folder, ['start', '--config', folder.configFile])),
    );
  }

  const gateways: Member[] = [];
  for (let index = 0; index < options.gateways; index += 1) {
    const name = `gateway-${index + 1}`;
    const folder = building.use(await createHubFolder());
    const args = ['gateway', '--hub', `http://127.0.0.1:${hubsPort}/`, '--bind', folder.url];
    directories.push(folder.directory);
    gateways.push(
      building.use(
        createMember(name, 'gateway', folder, args, { HUB_GATEWAY_TOKEN: gatewayToken }),
      ),
    );
  }

  building.use(
    await startHaproxy(
      haproxyOf({
        frontPort,
        front: gateways.length > 0 ? gateways : hubs,
        hubsPort,
        hubs,
      }),
      [frontPort, hubsPort],
    ),
  );
  await Promise.all(hubs.map((hub) => hub.start()));
  await Promise.all(gateways.map((gateway) => gateway.start()));

  const apiUrl = `${url}hub/api`;
  const fleet = {
    url,
    apiUrl,
    hubs,
    gateways,
    postgres,
    databaseUrl,
    redis,
    serviceNames,
    directories,
    api: (path: string, init: RequestInit = {}) =>
      fetch(apiUrl + path, {
        ...init,
        headers: {
          authorization: `token ${adminToken}`,
          'content-type': 'application/json',
          ...init.headers,
        },
      }),
    silenceFeeds: () => relay?.silenceOpen('listen hub_changed'),
  };
  for (const at of [fleet, ...hubs, ...gateways])
    await untilServicesAnswer(at, startMs, serviceNames);
  const built = building.move();
  return { ...fleet, [Symbol.asyncDispose]: () => built.disposeAsync() };
}

/** Waits until each service answers at an address. Returns how long that took, in ms. */
export async function untilServicesAnswer(
  { url }: Pick<Fleet, 'url'>,
  limitMs: number,
  serviceNames: readonly string[],
): Promise<number> {
  const startedAt = performance.now();
  await Promise.all(
    serviceNames.map(async (name) => {
      for (;;) {
        if (await answers(`${url}services/${name}/`)) return;
        if (performance.now() - startedAt > limitMs)
          throw new Error(`the service ${name} does not answer after ${limitMs} ms`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }),
  );
  return performance.now() - startedAt;
}

async function answers(address: string): Promise<boolean> {
  try {
    const answer = await fetch(address, {
      headers: { authorization: `token ${adminToken}` },
      redirect: 'manual',
      signal: AbortSignal.timeout(5_000),
    });
    await answer.arrayBuffer();
    return answer.status === 200;
  } catch {
    return false;
  }
}

function createMember(
  name: string,
  kind: Member['kind'],
  folder: HubFolder,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Member {
  let running: HubProcess | undefined;
  let former = '';
  const end = async (signal: NodeJS.Signals) => {
    const ending = running;
    if (ending === undefined) return;
    running = undefined;
    ending.signal(signal);
    // Its gateways go on, and hold what it wrote to open.
    await until(() => !isAlive(ending.pid), `${name} has ended`);
    former += ending.stderr();
  };
  return {
    name,
    kind,
    url: folder.url,
    get pid() {
      return running?.pid ?? 0;
    },
    log: () => former + (running?.stderr() ?? ''),
    async start() {
      const started = spawnHubProcess(args, { cwd: folder.directory, env });
      running = started;
      let code: number | null | undefined;
      void started.exited.then((exitCode) => {
        code = exitCode;
      });
      await until(
        () => code !== undefined || started.stdout().includes('is ready at'),
        `${name} is ready`,
      );
      if (code !== undefined) throw new Error(`${name} ended with ${code}: ${started.stderr()}`);
    },
    end,
    // Ends the gateways of a hub too.
    [Symbol.asyncDispose]: () => end('SIGINT'),
  };
}

function haproxyOf({
  frontPort,
  front,
  hubsPort,
  hubs,
}: {
  readonly frontPort: number;
  readonly front: readonly Member[];
  readonly hubsPort: number;
  readonly hubs: readonly Member[];
}): string {
  const lines = (members: readonly Member[]) =>
    members
      .map(({ name, url }) => `  server ${name} ${new URL(url).host} check inter 500 fall 1 rise 1`)
      .join('\n');
  const backend = (name: string, members: readonly Member[], path: string) => `
backend ${name}
  option httpchk GET ${path}
  option redispatch
  retries 3
  retry-on conn-failure empty-response
${lines(members)}
`;
  return `
global
  maxconn 4000
defaults
  mode http
  timeout connect 2s
  timeout client 60s
  timeout server 60s
  timeout tunnel 1h
  option forwardfor
frontend front
  bind 127.0.0.1:${frontPort}
  default_backend front
frontend hubs
  bind 127.0.0.1:${hubsPort}
  default_backend hubs
${backend('front', front, '/hub/ready')}
${backend('hubs', hubs, '/hub/ready')}
`;
}
