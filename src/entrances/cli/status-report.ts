import { resolve } from 'node:path';
import { pino } from 'pino';
import { placeOf } from '../../cluster/instances/instance-directory.ts';
import { nothing } from '../../cluster/instances/instance-overview.ts';
import { createInstanceStore, type OwnedThings } from '../../cluster/instances/instance-store.ts';
import { createNoticeStore, hasBegun, type Notices } from '../../cluster/notices/notice-store.ts';
import { createLoginSessionStore } from '../../identity/sessions/login-session-store.ts';
import type { AnswerOf } from '../../operations/operations.ts';
import type { Config } from '../../platform/config/config.ts';
import { mebibytes } from '../../platform/logging/mebibytes.ts';
import { isSameProcess } from '../../platform/process-table/process-table.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import { exactTime, localizedPhrase } from '../../platform/texts/text.ts';
import { readMachineId } from '../../spawning/processes/machine-id.ts';
import {
  listStartedGateways,
  type StartedGateway,
} from '../../traffic/gateway/gateway-process-store.ts';
import { createServerCountStore } from '../../workloads/servers/server-count-store.ts';
import { createServiceOwnerStore } from '../../workloads/services/service-owner-store.ts';
import { readReport } from '../../workloads/services/service-report.ts';
import { createServiceStopStore } from '../../workloads/services/service-stop-store.ts';
import type { CliIo } from './cli-io.ts';
import { askForServices } from './command-entrance.ts';
import { namesOfManaged } from './find-program.ts';

type Placed = ReturnType<typeof placeOf> & {
  readonly owned: OwnedThings;
};

interface ServiceLine {
  readonly name: string;
  readonly state: string;
  readonly instance: string | null;
  readonly restarts: number;
  readonly pid: number | null;
  /** Since when it is in its state. */
  readonly since: string | null;
  readonly cpu_cores: number | null;
  readonly memory_bytes: number | null;
  readonly last_error: string | null;
  /** Who stopped it, and when, of one that stays stopped. */
  readonly stopped: { readonly by: string | null; readonly at: string } | null;
}

/** Prints what the database tells of the instances, and where services and servers run. */
export async function reportStatus(
  config: Config,
  { io, version, json }: { readonly io: CliIo; readonly version: string; readonly json: boolean },
): Promise<void> {
  const { Hub, directory } = config;
  const log = pino({ level: 'silent' });
  await using database = await openDatabase(Hub.database_url, {
    directory: resolve(directory),
    log,
  });
  const store = createInstanceStore(database);
  const here = { machineId: readMachineId() };
  const [instances, owned, owners, stops, servers, sessions, started, notices, known] =
    await Promise.all([
      store.list(),
      store.listOwned(),
      createServiceOwnerStore(database, '').list(),
      createServiceStopStore(database).list(),
      createServerCountStore(database).countByState(),
      createLoginSessionStore(database).count(),
      listStartedGateways(database),
      createNoticeStore(database).current(),
      askForServices(database, config).catch(() => undefined),
    ]);
  const placed = instances.map((instance) => ({
    ...placeOf(instance, here),
    owned: owned.get(instance.id) ?? nothing,
  }));
  const services = namesOfManaged(config, [...owners, ...stops]).map((name): ServiceLine => {
    const owner = owners.find((each) => each.name === name);
    const host = placed.find(({ instance, isUp }) => isUp && instance.id === owner?.instanceId);
    // One that has an owner ends, or is another one by now.
    const stop = owner === undefined ? stops.find((each) => each.name === name) : undefined;
    const report = host === undefined ? undefined : readReport(owner?.status);
    return {
      name,
      state: report?.state ?? 'stopped',
      instance: host?.instance.name ?? null,
      restarts: report?.restarts ?? 0,
      pid: report?.pid ?? null,
      since: report?.since?.toISOString() ?? null,
      cpu_cores: report?.usage?.cpuCores ?? null,
      memory_bytes: report?.usage?.memoryBytes ?? null,
      last_error: report?.lastError === undefined ? null : String(report.lastError),
      stopped: stop === undefined ? null : { by: stop.by ?? null, at: stop.at.toISOString() },
    };
  });
  const external = known && Object.values(known).filter(({ managed }) => managed === false);
  const gateways = started.flatMap((gateway) => placeGateway(gateway, { placed, here }));
  const status = {
    version,
    instances: placed.map(present),
    gateways: gateways.map(({ instance, host, identity, startedAt, state }) => ({
      instance,
      host,
      pid: identity.pid,
      started: startedAt.toISOString(),
      up: state === 'unknown' ? null : state === 'up',
    })),
    services,
    /** Null while no hub answers that watches them. */
    external_services:
      external?.map(({ name, state, since, last_error }) => ({ name, state, since, last_error })) ??
      null,
    servers,
    sessions: { count: sessions.sessions, users: sessions.users },
    announcement: notices.announcement?.text ?? null,
    maintenance: {
      active: hasBegun(notices.maintenance, database.now()),
      text: notices.maintenance?.text ?? null,
      since: notices.maintenance?.since.toISOString() ?? null,
      until: notices.maintenance?.until?.toISOString() ?? null,
    },
  };
  io.stdout.write(
    json
      ? `${JSON.stringify(status, null, 2)}\n`
      : describe({ version, placed, gateways, services, external, servers, sessions, notices }),
  );
}

interface GatewayLine extends Pick<StartedGateway, 'identity' | 'startedAt'> {
  readonly instance: string;
  readonly host: string;
  /** `unknown` of a process on another machine. */
  readonly state: 'up' | 'down' | 'unknown';
}

/** Where a gateway is; none of a hub that no one knows any more. */
function placeGateway(
  { instanceName, identity, startedAt }: StartedGateway,
  { placed, here }: { readonly placed: readonly Placed[]; readonly here: { machineId: string } },
): GatewayLine[] {
  const instance = placed.find(({ instance: { name } }) => name === instanceName)?.instance;
  if (instance === undefined) return [];
  const { name, host, machineId } = instance;
  const isHere = machineId === here.machineId;
  const seen = isSameProcess(identity) ? 'up' : 'down';
  return [{ instance: name, host, identity, startedAt, state: isHere ? seen : 'unknown' }];
}

function present({ instance, isUp, downSince, owned }: Placed) {
  return {
    name: instance.name,
    up: isUp,
    down_since: downSince?.toISOString() ?? null,
    version: instance.version,
    started: instance.startedAt.toISOString(),
    host: instance.host,
    pid: instance.process.pid,
    address: instance.url ?? null,
    servers: owned.servers,
    services: owned.services,
  };
}

function describe(status: {
  readonly version: string;
  readonly placed: readonly Placed[];
  readonly gateways: readonly GatewayLine[];
  readonly services: readonly ServiceLine[];
  readonly external: readonly AnswerOf<'listServices'>[string][] | undefined;
  readonly servers: Readonly<Record<string, number>>;
  readonly sessions: { readonly sessions: number; readonly users: number };
  readonly notices: Notices;
}): string {
  const { version, placed, gateways, services, external, servers, sessions, notices } = status;
  const instanceRows = placed.map(({ instance, isUp, downSince, owned }) => [
    instance.name,
    isUp ? 'up' : 'down',
    `since ${shortTime(isUp ? instance.startedAt : downSince)}`,
    instance.version,
    `${instance.host}, process ${instance.process.pid}`,
    instance.url ?? 'no address',
    `${counted(owned.servers, 'server')}, ${counted(owned.services.length, 'service')}`,
  ]);
  const serviceRows = services.map((service) => [
    service.name,
    service.state,
    service.since === null ? '' : `since ${shortTime(new Date(service.since))}`,
    service.instance === null ? 'runs nowhere' : `at ${service.instance}`,
    service.cpu_cores === null ? '' : `CPU ${(service.cpu_cores * 100).toFixed(1)} %`,
    service.memory_bytes === null ? '' : mebibytes(service.memory_bytes),
    counted(service.restarts, 'restart'),
    whatElse(service),
  ]);
  const externalRows = external?.map(({ name, state, since, last_error }) => [
    name,
    state ?? '',
    since ? `since ${shortTime(new Date(since))}` : '',
    last_error ?? '',
  ]);
  const gatewayRows = gateways.map(({ instance, host, identity, startedAt, state }) => [
    `${host}-${identity.pid}`,
    state,
    `since ${shortTime(startedAt)}`,
    `started by ${instance}`,
  ]);
  const serverTexts = Object.entries(servers).map(([state, count]) => `${count} ${state}`);
  return [
    `hub ${version}`,
    '',
    'Instances:',
    ...columns(instanceRows, 'No hub runs on this database.'),
    '',
    ...(gateways.length === 0 ? [] : ['Gateways:', ...columns(gatewayRows, ''), '']),
    'Managed services:',
    ...columns(serviceRows, 'None.'),
    '',
    'External services:',
    ...columns(externalRows ?? [], externalRows ? 'None.' : 'Not known: no hub answers.'),
    '',
    `Servers: ${serverTexts.length === 0 ? 'none' : serverTexts.join(', ')}`,
    `Sessions: ${sessions.sessions === 0 ? 'none' : `${sessions.sessions} of ${counted(sessions.users, 'user')}`}`,
    ...describeNotices(notices),
    '',
  ].join('\n');
}

function whatElse({ stopped, last_error }: ServiceLine): string {
  if (stopped === null) return last_error ?? '';
  return `stopped by ${stopped.by ?? 'hand'} since ${shortTime(new Date(stopped.at))}`;
}

function describeNotices({ announcement, maintenance }: Notices): string[] {
  const end = ({ until }: { readonly until?: Date | undefined }) =>
    until === undefined ? '' : ` until ${exactTime(until)}`;
  const reported = (text: string) => (text === '' ? '' : `: ${text.replaceAll(/\s+/g, ' ')}`);
  return [
    ...(maintenance === undefined
      ? []
      : [
          `Maintenance from ${exactTime(maintenance.since)}${end(maintenance)}, no servers are started${reported(String(localizedPhrase(maintenance.text)))}`,
        ]),
    ...(announcement === undefined
      ? []
      : [
          `Announcement${end(announcement)}${reported(String(localizedPhrase(announcement.text)))}`,
        ]),
  ];
}

function counted(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? '' : 's'}`;
}

function shortTime(date: Date | undefined): string {
  if (date === undefined) return 'an unknown time';
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** Lines with their parts below one another. */
function columns(rows: readonly (readonly string[])[], none: string): string[] {
  if (rows.length === 0) return [`  ${none}`];
  const widths = rows[0]?.map((_, index) =>
    Math.max(...rows.map((row) => row[index]?.length ?? 0)),
  );
  return rows.map((row) =>
    `  ${row.map((text, index) => text.padEnd(widths?.[index] ?? 0)).join('  ')}`.trimEnd(),
  );
}
