import { geteuid } from 'node:process';
import type { Logger } from 'pino';
import { messageOf } from '../../platform/errors.ts';
import { isSamePhrase, message, type Phrase, type Text, text } from '../../platform/texts/text.ts';
import { type Clock, systemClock } from '../../spawning/processes/clock.ts';
import { createLineLimit } from '../../spawning/processes/line-limit.ts';
import type { OutputFeed } from '../../spawning/processes/output-feed.ts';
import { type OutputLog, openOutputLog } from '../../spawning/processes/output-log.ts';
import { createFindForeignProcess } from '../../spawning/processes/port-owner.ts';
import { endProcessGroup } from '../../spawning/processes/process-group.ts';
import { createOwnProbe, type probeReadiness } from '../../spawning/processes/readiness-probe.ts';
import {
  type StartOutcome,
  type SupervisedProcess,
  startProcess,
} from '../../spawning/processes/supervised-process.ts';
import { findSystemUser, type SystemUser } from '../../spawning/processes/system-user.ts';
import { watchHealth } from './health-watch.ts';
import type { ManagedProcessStore } from './managed-process-store.ts';
import { decideRestart, defaultRestartLimits, type RestartLimits } from './restart-policy.ts';
import type { Service, ServiceLaunch } from './service.ts';
import type { ServiceRoutes } from './service-routes.ts';
import type { ServiceExit, ServiceState, SupervisedService } from './service-status.ts';

export interface ManagedServiceOptions {
  readonly service: Service & { readonly launch: ServiceLaunch };
  /** The whole environment of the service under an account. */
  readonly environmentFor: (
    service: Service,
    user: SystemUser | undefined,
  ) => Record<string, string>;
  /** Where its output is kept. */
  readonly logFile: string;
  /** Where its last lines are to be read. */
  readonly feed?: OutputFeed;
  /** Carried by everything it starts. */
  readonly tag: string;
  readonly routes: ServiceRoutes;
  readonly store: ManagedProcessStore;
  readonly probe: typeof probeReadiness;
  readonly log: Logger;
  /** Asked right before each start. */
  readonly mayStart?: () => boolean;
  /** Called when anything of its status has changed but for what it uses and writes. */
  readonly onChange?: () => void;
  readonly clock?: Clock;
  readonly random?: () => number;
  readonly limits?: RestartLimits;
}

/** How long a service without a url must run to count as ready. */
const settleMs = 1_000;
/** How often it asks again whether it may start. */
const startGateMs = 250;
/** Of a service's output in the hub's own log; its file holds the rest. */
const loggedLinesPerSecond = 20;
const maxLoggedLineLength = 1_000;

/**
 * The watchdog of one managed service: it starts the command and starts it again whenever it
 * ends (specification, States and transitions), until it is told to stop. Whatever goes wrong becomes
 * a state that can be seen; nothing is thrown.
 */
export function createManagedService(options: ManagedServiceOptions): SupervisedService {
  const { logFile, tag, routes, store, clock = systemClock, random = Math.random } = options;
  const { launch } = options.service;
  const findForeignProcess = createFindForeignProcess({
    accounts: () => [0, geteuid?.(), user?.userId],
    trustsAccounts: launch.listensElsewhere,
  });
  // While it is down, any program of the machine could listen on its port and get its visitors.
  const probe = createOwnProbe(options.probe, (url) =>
    findForeignProcess(url, { groupId: process?.identity.pid, tag }),
  );
  const limits = options.limits ?? defaultRestartLimits;
  const stopping = new AbortController();
  let service: Service = options.service;
  const log = options.log.child({ service: service.name });

  const loggedOutput = createLineLimit({
    linesPerSecond: loggedLinesPerSecond,
    onLine: (line) =>
      log.info({ servicePid: process?.identity.pid }, line.slice(0, maxLoggedLineLength)),
    onSuppressed: (lines) =>
      log.info({ lines, file: logFile }, 'more lines of its output are in its file only'),
  });
  /** What the present run is at; while runs keep failing, `stateNow` tells that instead. */
  let state: ServiceState = 'stopped';
  let isCrashLooping = false;
  let shown: ServiceState = state;
  let since = new Date(clock.now());
  function enter(next: ServiceState): void {
    state = next;
    noteChange();
  }
  function noteChange(): void {
    if (shown !== stateNow()) since = new Date(clock.now());
    shown = stateNow();
    options.onChange?.();
  }
  let user: SystemUser | undefined;
  let output: OutputLog | undefined;
  let process: SupervisedProcess | undefined;
  let startedAt: Date | undefined;
  let uptimeMs: (() => number) | undefined;
  let nextStartAt: Date | undefined;
  let restarts = 0;
  let failures = 0;
  let lastExit: ServiceExit | undefined;
  let lastError: Phrase | undefined;
  let wake = new AbortController();
  let isRestartWanted = false;
  let running: Promise<void> = Promise.resolve();

  function onReady(): void {
    if (stopping.signal.aborted || isRestartWanted) return;
    log.info({ servicePid: process?.identity.pid }, 'service is ready');
    lastError = undefined;
    enter('ready');
    if (service.url !== undefined) routes.open(service);
  }

  function stateNow(): ServiceState {
    const isOver = state === 'stopped' || state === 'stopping';
    return isCrashLooping && !isOver ? 'crash_looping' : state;
  }

  /** Only a run that lasts ends a crash loop: a service that dies every few seconds is ready in between. */
  function onStable(): void {
    failures = 0;
    if (!isCrashLooping) return;
    isCrashLooping = false;
    noteChange();
    log.info('service no longer crashes');
  }

  function onUnhealthy(reason: Phrase): void {
    if (!isSamePhrase(reason, lastError)) log.warn({ reason }, 'service is not ready');
    lastError = reason;
    if (state === 'unhealthy') return;
    enter('unhealthy');
    closeRoute();
  }

  function closeRoute(): void {
    if (service.url !== undefined) routes.close(service);
  }

  async function launchProcess(): Promise<StartOutcome> {
    try {
      output ??= await openOutputLog({
        file: logFile,
        feed: options.feed,
        secrets: service.apiToken === undefined ? [] : [service.apiToken.reveal()],
        // What the hub itself remarked stands in its log already.
        onLine: (line, isRemark) => !isRemark && loggedOutput.push(line),
      });
      user = launch.user === undefined ? undefined : await findSystemUser(launch.user);
      if (launch.user !== undefined && user === undefined) {
        return {
          started: false,
          reason: text`there is no user "${launch.user}" on this machine`,
        };
      }
      const foreignProcess =
        service.url === undefined || launch.listensElsewhere
          ? undefined
          : await findForeignProcess(service.url, undefined);
      if (foreignProcess !== undefined) return { started: false, reason: foreignProcess };
      const { command, workingDirectory } = launch;
      const environment = options.environmentFor(service, user);
      return await startProcess({
        command,
        workingDirectory,
        environment,
        output,
        tag,
        user,
        refusal() {
          if (stopping.signal.aborted) return text`it is being stopped`;
          return options.mayStart?.() === false
            ? text`this instance has lost its lease`
            : undefined;
        },
        clock,
      });
    } catch (thrown) {
      return { started: false, reason: messageOf(thrown) };
    }
  }

  async function watch(signal: AbortSignal): Promise<void> {
    const { url } = service;
    if (url !== undefined) {
      await watchHealth({
        service: { ...service, url },
        signal,
        probe,
        clock,
        onReady,
        onUnhealthy,
      });
      return;
    }
    await clock.sleep(settleMs, signal);
    if (!signal.aborted) onReady();
  }

  /** Lives through one run of the command and returns how long to wait for the next one. */
  async function runOnce(started: SupervisedProcess): Promise<number> {
    process = started;
    startedAt = new Date(clock.now());
    const beganMs = clock.monotonicMs();
    uptimeMs = () => clock.monotonicMs() - beganMs;
    log.info({ servicePid: started.identity.pid }, 'service started');
    options.onChange?.();
    await record(started);
    if (stopping.signal.aborted) await started.stop({ graceMs: launch.stopGraceMs });
    const life = new AbortController();
    const watching = watch(life.signal);
    const settling = clock.sleep(limits.stableRunMs, life.signal).then(() => {
      if (!life.signal.aborted) onStable();
    });
    const { code, signal, leftBehind } = await started.exited;
    life.abort();
    await Promise.all([watching, settling]);
    process = undefined;
    startedAt = undefined;
    uptimeMs = undefined;
    const ranForMs = clock.monotonicMs() - beganMs;
    lastExit = { code, signal, leftBehind, ranForMs, at: new Date(clock.now()) };
    if (stopping.signal.aborted || isRestartWanted) return 0;
    return fail(explainExit(lastExit), ranForMs);
  }

  function fail(reason: Phrase, ranForMs: number): number {
    lastError = reason;
    const decision = decideRestart({ failuresBefore: failures, ranForMs }, limits, random);
    failures = decision.failures;
    isCrashLooping = decision.isCrashLooping;
    nextStartAt = new Date(clock.now() + decision.delayMs);
    enter('restarting');
    log.warn(
      { reason, failures, restartInMs: decision.delayMs, state: stateNow() },
      'service ended, it will be restarted',
    );
    output?.note(`${reason}; restart in ${decision.delayMs / 1000} s`).catch(ignoreFullDisk);
    return decision.delayMs;
  }

  async function run(): Promise<void> {
    closeRoute();
    while (!stopping.signal.aborted) {
      isRestartWanted = false;
      nextStartAt = undefined;
      if (options.mayStart?.() === false) {
        await clock.sleep(startGateMs, stopping.signal);
        continue;
      }
      enter('starting');
      wake = new AbortController();
      const outcome = await launchProcess();
      const delayMs = outcome.started ? await runOnce(outcome.process) : fail(outcome.reason, 0);
      if (stopping.signal.aborted) break;
      closeRoute();
      restarts += 1;
      if (delayMs > 0) {
        const waiting = clock.sleep(delayMs, AbortSignal.any([stopping.signal, wake.signal]));
        // A daemon that came up late would hold the port of the next run, or outlive the hub.
        await Promise.all([endLeftovers(), waiting]);
      }
    }
    closeRoute();
    enter('stopped');
    await store.forget(service.name).catch(warnOfStore);
    await output?.[Symbol.asyncDispose]();
    loggedOutput[Symbol.dispose]();
  }

  async function endLeftovers(): Promise<void> {
    const { stopGraceMs: graceMs } = launch;
    const { found, survivors } = await endProcessGroup({ groupId: undefined, tag }, { graceMs });
    if (found > 0)
      log.warn({ processes: found, survivors }, 'background processes of service ended');
  }

  async function record(started: SupervisedProcess): Promise<void> {
    await store.record(service.name, started.identity, new Date(clock.now())).catch(warnOfStore);
  }

  function warnOfStore(thrown: unknown): void {
    log.warn({ err: thrown }, 'process of service could not be recorded');
  }

  return {
    get service() {
      return service;
    },
    start() {
      running = run().catch((thrown: unknown) => {
        lastError = text`the watchdog itself has failed`;
        enter('stopped');
        log.error({ err: thrown }, 'service watchdog failed');
      });
    },
    async stop({ maxGraceMs = Number.POSITIVE_INFINITY } = {}) {
      stopping.abort();
      if (state !== 'stopped') enter('stopping');
      closeRoute();
      await process?.stop({ graceMs: Math.min(launch.stopGraceMs, maxGraceMs) });
      await running;
    },
    restart() {
      failures = 0;
      isCrashLooping = false;
      isRestartWanted = true;
      wake.abort();
      process
        ?.stop({ graceMs: launch.stopGraceMs })
        .catch((thrown: unknown) => log.error({ err: thrown }, 'service could not be ended'));
    },
    update(changed) {
      service = changed;
      if (state === 'ready' && service.url !== undefined) routes.open(service);
    },
    status: (usage) => ({
      name: service.name,
      kind: 'managed',
      state: stateNow(),
      isReady: state === 'ready',
      since,
      pid: process?.identity.pid,
      startedAt,
      uptimeMs: uptimeMs?.(),
      nextStartAt,
      restarts,
      lastExit,
      lastError,
      usage: process === undefined ? undefined : usage,
    }),
  };
}

function explainExit({ code, signal, leftBehind, ranForMs }: ServiceExit): Text {
  const seconds = (ranForMs / 1000).toFixed(1);
  const exitCode = String(code ?? 'unknown');
  if (leftBehind === 0) {
    return signal === null
      ? message('exited with code {code} after {seconds, number} s', { code: exitCode, seconds })
      : message('was ended by {signal} after {seconds, number} s', { signal, seconds });
  }
  const left = String(leftBehind);
  return signal === null
    ? message(
        'exited with code {code} after {seconds, number} s; what it left running in the background ({processes}) was ended: a service must stay in the foreground',
        { code: exitCode, seconds, processes: left },
      )
    : message(
        'was ended by {signal} after {seconds, number} s; what it left running in the background ({processes}) was ended: a service must stay in the foreground',
        { signal, seconds, processes: left },
      );
}

function ignoreFullDisk(): void {
  // The remark also stands in the hub's log.
}
