import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env, pid as ownPid } from 'node:process';
import { pino } from 'pino';
import { afterEach, beforeEach, vi } from 'vitest';
import {
  type InstanceLease,
  openInstanceLease,
} from '../../src/cluster/instances/instance-lease.ts';
import { createInstanceStore } from '../../src/cluster/instances/instance-store.ts';
import type { ServiceConfig } from '../../src/platform/config/config.ts';
import { Secret } from '../../src/platform/config/secret.ts';
import { serviceSchema } from '../../src/platform/config/service-schema.ts';
import { createOrigins } from '../../src/platform/http/origins.ts';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import { type Clock, systemClock } from '../../src/spawning/processes/clock.ts';
import { createOutputFeed } from '../../src/spawning/processes/output-feed.ts';
import type { ProcessView } from '../../src/spawning/processes/process-view.ts';
import { createManagedProcessStore } from '../../src/workloads/services/managed-process-store.ts';
import { createServiceOwnerStore } from '../../src/workloads/services/service-owner-store.ts';
import {
  createServiceRegistry,
  type ServiceRegistry,
} from '../../src/workloads/services/service-registry.ts';
import type { ServiceState, ServiceStatus } from '../../src/workloads/services/service-status.ts';
import { createServiceStopStore } from '../../src/workloads/services/service-stop-store.ts';
import { freePort } from './free-port.ts';
import { fixtureFile, nodeCommand } from './node-command.ts';

const log = pino({ level: 'silent' });

/** What each test of services starts with: an empty database and folder, and no service. */
export interface ServicesWorld {
  readonly directory: string;
  readonly database: HubDatabase;
  readonly lease: InstanceLease;
  isLeaseHeld: boolean;
  readonly routes: Map<string, 'open' | 'closed'>;
  readonly tokens: Map<string, string>;
}

/** Makes a world for each test of the file, and registries in it; both end with the test. */
export function useServices() {
  const registries: ServiceRegistry[] = [];
  const world = {} as { -readonly [Key in keyof ServicesWorld]: ServicesWorld[Key] };

  beforeEach(async () => {
    const directory = await mkdtemp(join(tmpdir(), 'services-'));
    await chmod(directory, 0o755);
    const database = await openDatabase('sqlite::memory:', { directory, log });
    const lease = await takeLease(database);
    Object.assign(world, { directory, database, lease, isLeaseHeld: true });
    world.routes = new Map();
    world.tokens = new Map();
  });
  afterEach(async () => {
    await Promise.all(registries.splice(0).map((registry) => registry[Symbol.asyncDispose]()));
    await world.database[Symbol.asyncDispose]();
    await rm(world.directory, { recursive: true });
  });

  function createRegistry(
    entries: readonly Record<string, unknown>[],
    stableRunMs = 600_000,
    clock: Clock = systemClock,
    view?: ProcessView,
  ): ServiceRegistry {
    const registry = createServiceRegistry({
      configs: entries.map(serviceConfig),
      hubId: 'hub-1',
      directory: world.directory,
      logDirectory: join(world.directory, 'logs'),
      prefixes: ['HUB'],
      inherited: { PATH: env['PATH'] },
      apiUrl: 'http://127.0.0.1:8080/hub/api',
      origins: createOrigins({
        publicUrl: new URL('http://127.0.0.1:8000/'),
        basePath: '/',
      }),
      basePath: '/',
      routes: {
        open: ({ name }) => world.routes.set(name, 'open'),
        close: ({ name }) => world.routes.set(name, 'closed'),
        remove: ({ name }) => world.routes.delete(name),
      },
      store: createManagedProcessStore(world.database, world.lease.id),
      owners: createServiceOwnerStore(world.database, world.lease.id),
      stops: createServiceStopStore(world.database),
      isShared: false,
      lease: { ...world.lease, isHeld: () => world.isLeaseHeld },
      database: world.database,
      remote: {
        restart: async () => {},
        readOutput: async () => createOutputFeed().read(),
        endLeft: async () => {},
      },
      tokens: {
        set: (name, token) => world.tokens.set(name, token),
        setHash: (name, hash) => world.tokens.set(name, hash),
        delete: (name) => world.tokens.delete(name),
      },
      announceChange: () => undefined,
      log,
      random: () => 0,
      limits: { firstDelayMs: 10, maxDelayMs: 50, stableRunMs, crashLoopFailures: 3 },
      usageIntervalMs: 100,
      clock,
      ...(view && { view }),
    });
    registries.push(registry);
    return registry;
  }

  async function started(
    entries: readonly Record<string, unknown>[],
    stableRunMs?: number,
  ): Promise<ServiceRegistry> {
    const registry = createRegistry(entries, stableRunMs);
    await registry.start();
    return registry;
  }

  return { world: world as ServicesWorld, createRegistry, started };
}

/** As each start of a hub does: what the one before had is this one's. */
function takeLease(database: HubDatabase): Promise<InstanceLease> {
  const id = randomUUID();
  return openInstanceLease({
    store: createInstanceStore(database),
    instance: {
      id,
      name: 'here',
      url: undefined,
      host: 'here',
      machineId: 'here',
      process: { pid: ownPid, startTime: '' },
      version: '1',
      basePath: '/',
      keyDigests: [],
      settingsDigest: '',
    },
    isShared: false,
    announce: () => {},
    log,
  });
}

/** An entry of `Hub.services` as the configuration has it. */
export function serviceConfig(entry: Record<string, unknown>): ServiceConfig {
  const { api_token, ...rest } = serviceSchema.parse({ stop_timeout: 5, ...entry });
  return typeof api_token === 'string' ? { ...rest, api_token: new Secret(api_token) } : rest;
}

/** The command that runs a program of `fixtures/apps`. */
export function app(name: string, ...rest: string[]): string[] {
  return nodeCommand(fixtureFile(name), ...rest);
}

/** Waits until the status of a service fulfils a condition. */
export async function untilStatus(
  registry: ServiceRegistry,
  condition: (status: ServiceStatus) => boolean,
  name = 'a',
): Promise<ServiceStatus> {
  return vi.waitFor(
    () => {
      const status = registry.statusOf(name);
      if (status === undefined || !condition(status)) throw new Error(JSON.stringify(status));
      return status;
    },
    { timeout: 240_000, interval: 10 },
  );
}

/** Waits until a service has written something, and gives its lines. */
export async function untilOutput(
  registry: ServiceRegistry,
  name = 'a',
): Promise<readonly string[]> {
  return vi.waitFor(
    async () => {
      const { lines = [] } = (await registry.outputOf(name)?.read()) ?? {};
      if (lines.length === 0) throw new Error('it has written nothing');
      return lines;
    },
    { timeout: 240_000, interval: 10 },
  );
}

export const inState = (state: ServiceState) => (status: ServiceStatus) => status.state === state;

export async function freeUrl(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}
