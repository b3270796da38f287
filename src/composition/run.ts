import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { ReloadOutcome } from '../cluster/instances/reload-operation.ts';
import type { CheckedConfig } from '../entrances/cli/checked-config.ts';
import type { StartGateway, StartHub } from '../entrances/cli/cli-io.ts';
import { readVersion, runCli } from '../entrances/cli/run-cli.ts';
import { catchSignals, type Signals } from '../entrances/cli/signals.ts';
import { startedAs } from '../platform/files/program-folder.ts';
import { readIdentityFiles } from '../platform/internal-tls/identity-files.ts';
import { jsonLine } from '../platform/logging/create-log.ts';
import { type OpenedLog, openLog, writeWithoutWaiting } from '../platform/logging/open-log.ts';
import { limitHeapGrowth } from '../spawning/processes/memory-settings.ts';
import { connectServiceManager } from '../spawning/processes/service-manager.ts';
import type { Hub } from './hub.ts';

/** Runs a hub until SIGTERM or SIGINT, also while it starts; SIGHUP reloads its configuration. */
async function startHub(
  { checked, reload }: Parameters<StartHub>[0],
  signals: Signals,
): Promise<void> {
  signals.takeOver();
  const opened = openedLog ?? (await openLogFor(checked));
  const { log, droppedLogLines } = opened;
  for (const { path, message } of checked.warnings) log.warn({ setting: path }, message);
  using manager = await connectServiceManager(process.env, (error) =>
    log.warn({ err: error }, 'service manager (NOTIFY_SOCKET) cannot be notified'),
  );
  const stopping = Promise.withResolvers<string>();
  function beginStop(signal: string): void {
    log.info({ signal }, 'hub stopping');
    manager.stopping();
    endLate(log, checked.config.Hub.shutdown_timeout + stopReserveSeconds);
    stopping.resolve(signal);
  }
  signals.stop.addEventListener('abort', () => beginStop(String(signals.stop.reason)));

  // Only a start needs the whole program: all other commands answer sooner without it.
  const { createHub } = await import('./hub.ts');
  const hub = await createHub({
    ...checked,
    version: readVersion(),
    nodeVersion: process.version,
    environment: process.env,
    log,
    droppedLogLines,
    program: [process.execPath, ...process.execArgv, process.argv[1] ?? ''],
    signal: signals.stop,
  }).catch((error: unknown) => {
    if (!signals.stop.aborted) throw error;
    if (error !== signals.stop.reason) log.warn({ err: error }, 'start failed as well');
    return undefined;
  });
  if (hub !== undefined) {
    log.info({ url: hub.publicUrl.href }, 'hub ready');
    const status = `Ready at ${hub.publicUrl.href}`;
    manager.ready(status);
    void announce(hub, opened);
    limitHeapGrowth();
    const reloadNow = async (): Promise<ReloadOutcome> => {
      if (signals.stop.aborted) return { outcome: 'refused', problem: 'The hub is stopping.' };
      manager.reloading();
      try {
        const report = await hub.reload(await reload());
        manager.ready(status);
        return report;
      } catch (error) {
        const message = 'the configuration was not reloaded; the former one stays in force';
        log.error({ err: error }, message);
        manager.ready(`${status}; ${message}`);
        return {
          outcome: 'refused',
          problem: String(error instanceof Error ? error.message : error),
        };
      }
    };
    const reloadEverywhere = async (): Promise<ReloadOutcome> => {
      const outcome = await reloadNow();
      if (outcome.outcome === 'reloaded') {
        await hub.requestReload().catch((error: unknown) => {
          log.error({ err: error }, 'reload could not be sent to other instances');
        });
      }
      return outcome;
    };
    hub.onReloadRequested({ byInstance: () => void reloadNow(), byOperator: reloadEverywhere });
    signals.onHangup(() => void reloadEverywhere());
    void hub.stopRequested.then(() => beginStop('POST /hub/api/shutdown'));
    // Only what may come back at once leaves them without a hub.
    if ((await stopping.promise) !== 'SIGTERM') hub.endGateways();
    await hub[Symbol.asyncDispose]();
  }
  log.info('hub stopped');
}

/** Runs a gateway until SIGTERM or SIGINT, or until it has to end. */
async function startGateway(options: Parameters<StartGateway>[0], signals: Signals): Promise<void> {
  signals.takeOver();
  openedLog = await openLog({
    stderr: process.stderr,
    level: options.logLevel,
    form: logFormat.parse(options.logFormat),
    time: 'iso8601',
    levelForm: 'name',
  });
  onlyJson = options.logFormat === 'json';
  const log = openedLog.log.child({ gateway: options.name });
  const stopping = signals.stop;
  const { createGatewayProcess } = await import('./gateway-process.ts');
  const gateway = await createGatewayProcess({
    ...options,
    identity: readIdentityFiles(process.env),
    version: readVersion(),
    log,
    signal: stopping,
  }).catch((error: unknown) => {
    if (!stopping.aborted) throw error;
    return undefined;
  });
  if (gateway !== undefined) {
    log.info({ url: gateway.publicUrl.href }, 'gateway ready');
    announceReady(openedLog, `The gateway is ready at ${gateway.publicUrl.href}`);
    limitHeapGrowth();
    const stopped = Promise.withResolvers<string>();
    stopping.addEventListener('abort', () => stopped.resolve(String(stopping.reason)));
    const reason = await Promise.race([stopped.promise, gateway.ended]);
    log.info({ reason }, 'gateway stopping');
    endLate(log, gateway.shutdownSeconds + stopReserveSeconds);
    await gateway[Symbol.asyncDispose]();
  }
  log.info('gateway stopped');
}

const logFormat = z.enum(['auto', 'json', 'text']).catch('auto');

/** Ends the process when a stop takes longer than it may. */
function endLate(log: OpenedLog['log'], seconds: number): void {
  const deadline = setTimeout(() => {
    log.error('it did not stop in time');
    process.exit(1);
  }, seconds * 1000);
  deadline.unref();
}

/** Beyond the time for requests in flight: for services to end and the database to be closed. */
const stopReserveSeconds = 30;

/** How long the link of the first administrator waits for what services write at their start. */
const announcementPatienceMs = 3_000;
const announcementPollMs = 50;
/** What a log without a reader may cost at the end. */
const flushMs = 1_000;

let openedLog: OpenedLog | undefined;
/** Of a hub whose log is not open yet. */
let earlyWarnings: Error[] | undefined;
/** Whether people have no terminal to read: what is said beside the log is in its form as well. */
let onlyJson = false;

function logWarning({ log }: OpenedLog, warning: Error): void {
  log.warn({ err: warning }, 'warning of the runtime');
}

async function openLogFor({ config }: CheckedConfig): Promise<OpenedLog> {
  const { log_level, log_format, log_time_format, log_level_format } = config.Hub;
  onlyJson = log_format === 'json';
  openedLog = await openLog({
    stderr: process.stderr,
    level: log_level,
    form: log_format,
    time: log_time_format,
    levelForm: log_level_format,
  });
  for (const warning of earlyWarnings?.splice(0) ?? []) logWarning(openedLog, warning);
  return openedLog;
}

/**
 * Says where the hub is, after its log, so that the link stands last on a terminal. An event where lines
 * must be JSON: both streams of a container are one log.
 */
async function announce(hub: Hub, log: OpenedLog): Promise<void> {
  const { publicUrl, setUpUrl } = hub;
  const giveUpAt = performance.now() + announcementPatienceMs;
  while (setUpUrl !== undefined && hub.isServiceStarting() && performance.now() < giveUpAt) {
    await delay(announcementPollMs);
  }
  await log.flush(flushMs);
  announceReady(log, `The hub is ready at ${publicUrl.href}`, setUpUrl);
}

/** In one piece: what waits for the first line reads the link along with it. */
function announceReady({ log }: OpenedLog, ready: string, setUpUrl?: string): void {
  const setUp =
    setUpUrl === undefined
      ? ''
      : `\nThere is no administrator yet. Open this link once to become the first one:\n  ${setUpUrl}`;
  const event = onlyJson ? jsonLine(log, { setUpUrl, msg: ready }) : undefined;
  writeWithoutWaiting(process.stdout, event ?? `${ready}${setUp}\n`);
}

function untilInterrupted(): AbortSignal {
  const interruption = new AbortController();
  const interrupt = () => interruption.abort();
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  process.stdout.once('error', interrupt);
  return interruption.signal;
}

/** How long the process may outlive its command. */
const leftoverGraceMs = 3_000;

/** Runs the command that the process was started with, to its end. */
export async function run(signals: Signals | undefined): Promise<void> {
  process.on('unhandledRejection', (reason) => {
    // A bug, but no reason to end the work of all users: it is reported and the hub goes on.
    if (openedLog !== undefined) openedLog.log.error({ err: reason }, 'unhandled rejection');
    else process.stderr.write(`unhandled rejection: ${String(reason)}\n`);
  });
  // Node's own would write lines of its own form between those of the log.
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (openedLog !== undefined) logWarning(openedLog, warning);
    else if (earlyWarnings !== undefined) earlyWarnings.push(warning);
    else process.stderr.write(`${String(warning)}\n`);
  });
  // A reader who has gone, as in `hub user list | head`, is not a failure.
  process.stdout.on('error', () => {});
  process.on('exit', () => openedLog?.flushNow());

  startedAs(process.argv[1] ?? '', process.cwd());
  const args = process.argv.slice(2);
  if (args[0] === 'start') earlyWarnings = [];
  process.exitCode = await runCli(args, {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    env: process.env,
    untilInterrupted,
    reportFailure(description) {
      if (onlyJson) openedLog?.log.error({ reason: description }, 'ended by a failure');
      else process.stderr.write([...(earlyWarnings ?? []), description, ''].join('\n'));
    },
    async openLog(checked) {
      await openLogFor(checked);
    },
    startHub: (start) => startHub(start, signals ?? catchSignals()),
    startGateway: (gateway) => startGateway(gateway, signals ?? catchSignals()),
    openOperations: async (...opening) =>
      (await import('./command-operations.ts')).openOperations(...opening),
  });

  // Output that is not read would keep the process from ending.
  const isFlushed = (await openedLog?.flush(flushMs)) ?? true;
  if (openedLog !== undefined && (!isFlushed || process.stdout.writableLength > 0)) process.exit();

  // All that the hub opened is closed by now: what still keeps the process going is a plugin's.
  setTimeout(() => {
    const advice =
      'A plugin opens connections and starts timers in open, not in create, and ends them in [Symbol.asyncDispose].';
    if (openedLog !== undefined) openedLog.log.warn({ advice }, 'ended while something still ran');
    else process.stderr.write(`Ended while something still ran. ${advice}\n`);
    process.exit();
  }, leftoverGraceMs).unref();
}
