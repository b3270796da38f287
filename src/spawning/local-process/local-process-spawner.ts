import { join } from 'node:path';
import { geteuid } from 'node:process';
import { createLimiter } from '../../concurrency/limiter.ts';
import { HubError } from '../../errors.ts';
import type { SpawnRequest } from '../../plugin-host/spawn-request.ts';
import type { SpawnedServer, Spawner, SpawnerHost } from '../../plugin-host/spawner.ts';
import { systemClock } from '../../processes/clock.ts';
import { makeDirectory } from '../../processes/make-directory.ts';
import { hasOutputLog, type OutputLog, openOutputLog } from '../../processes/output-log.ts';
import { createFindStranger } from '../../processes/port-owner.ts';
import { endProcessGroup } from '../../processes/process-group.ts';
import { isSameProcess } from '../../processes/process-identity.ts';
import { measureUsage } from '../../processes/process-usage.ts';
import { createSharedView, type ProcessView } from '../../processes/process-view.ts';
import { fillGuardedCommand, withSingleuserProgram } from '../../processes/singleuser-program.ts';
import {
  adoptProcess,
  type ProcessExit,
  type StartOptions,
  type StartOutcome,
  type SupervisedProcess,
  startProcess,
} from '../../processes/supervised-process.ts';
import { findSystemUser, type SystemUser } from '../../processes/system-user.ts';
import { createMemoryGuard } from './memory-guard.ts';
import { makeOwnedDirectory } from './owned-directory.ts';
import { createAddressBook, type ServerAddress } from './server-address.ts';
import { type LocalServerState, readServerState } from './server-state.ts';
import { watchAddress } from './watch-address.ts';

export interface LocalProcessSpawnerOptions {
  readonly log: SpawnerHost['log'];
  readonly runtimeDirectory: string;
  readonly logDirectory: string;
  readonly memoryCheckMs: number;
  /** How long a start waits to see the server listen; a slower one is let be. Default 3 s. */
  readonly listenPatienceMs?: number;
  readonly view?: ProcessView;
}

/** A server this hub started or found again. */
interface LiveServer {
  readonly state: LocalServerState;
  readonly process: SupervisedProcess;
  readonly output: OutputLog;
  exit: ProcessExit | undefined;
  isEnding: boolean;
  /** Resolves when it has ended and its address and output are given back; never rejects. */
  cleanedUp: Promise<unknown>;
}

const portRetries = 3;
const longestForkPauseMs = 20;

/** Creates the spawner of local processes. Disposing of it leaves the servers running. */
export function createLocalProcessSpawner(options: LocalProcessSpawnerOptions): Spawner {
  const { log, runtimeDirectory, logDirectory, listenPatienceMs: patienceMs = 3_000 } = options;
  const { view = createSharedView() } = options;
  const addresses = createAddressBook();
  const forkLimiter = createLimiter(1);
  /** Servers of which no former hub can have left anything, since this one started them before. */
  const hasStarted = new Set<string>();
  const live = new Map<string, LiveServer>();
  const guard = createMemoryGuard({
    servers: guardedServers,
    intervalMs: options.memoryCheckMs,
    log,
  });

  const logFileOf = (serverId: string): string => join(logDirectory, `server-${serverId}.log`);

  function liveOf(state: LocalServerState): LiveServer | undefined {
    const server = live.get(state.serverId);
    return server?.process.identity.startTime === state.startTime ? server : undefined;
  }

  function guardedServers() {
    return [...live.values()].flatMap((server) => {
      const { pid, memoryLimitBytes } = server.state;
      if (memoryLimitBytes === undefined || server.isEnding || server.exit !== undefined) return [];
      const onExceeded = (reason: string) => void endExceeding(server, reason);
      return [{ pid, limitBytes: memoryLimitBytes, onExceeded }];
    });
  }

  async function endExceeding(server: LiveServer, reason: string): Promise<void> {
    server.isEnding = true;
    log.warn(
      { serverId: server.state.serverId, reason },
      'a server over its memory limit is ended',
    );
    await server.output.note(`the server is ended: ${reason}`).catch(() => undefined);
    await server.process.stop({ graceMs: 2_000 });
  }

  function follow(
    server: LiveServer,
    release: () => Promise<void>,
    user?: SystemUser,
  ): SpawnedServer {
    const { state, process, output } = server;
    const group = { groupId: process.identity.pid, tag: state.logFile };
    const findStranger = createFindStranger({
      view,
      accounts: () => [0, user?.userId ?? geteuid?.()],
    });
    live.set(state.serverId, server);
    const exited = process.exited.then(async (exit) => {
      server.exit = exit;
      await release().catch((thrown: unknown) =>
        log.warn(
          { serverId: state.serverId, err: thrown },
          'the socket of a server is left behind',
        ),
      );
      await output[Symbol.asyncDispose]();
      return { code: exit.code, signal: exit.signal };
    });
    server.cleanedUp = exited;
    return { url: state.url, state, findStranger: () => findStranger(state.url, group), exited };
  }

  /** Ends what an earlier hub started and could not write down any more. */
  async function endLeftovers(serverId: string, graceMs: number): Promise<void> {
    const logFile = logFileOf(serverId);
    if (!hasOutputLog(logFile)) return;
    await endProcessGroup({ groupId: undefined, tag: logFile }, { graceMs, view });
  }

  async function openLog(
    file: string,
    onOutput: SpawnRequest['onOutput'],
    environment: SpawnRequest['environment'] = {},
  ): Promise<OutputLog> {
    const tokens = Object.entries(environment).filter(([name]) => name.endsWith('_API_TOKEN'));
    return openOutputLog({
      file,
      secrets: tokens.map(([, token]) => token),
      // Both streams go into one file, so that their order is kept.
      onLine: (line) => onOutput(line, 'stdout'),
    });
  }

  function takeAddress(
    request: SpawnRequest,
    user: SystemUser | undefined,
  ): Promise<ServerAddress> {
    return request.socket
      ? addresses.takeSocket(runtimeDirectory, user)
      : addresses.takePort(request.ip);
  }

  /**
   * One after the other, with as long a pause as each took: while a process is forked the hub can do
   * nothing else, and others wait for it too.
   */
  function startInTurn(options: StartOptions): Promise<StartOutcome> {
    return forkLimiter(async () => {
      const begunAt = systemClock.monotonicMs();
      const outcome = await startProcess(options);
      await systemClock.sleep(Math.min(systemClock.monotonicMs() - begunAt, longestForkPauseMs));
      return outcome;
    });
  }

  /** Starts the command once; undefined when its port was taken before it could listen. */
  async function attempt(request: SpawnRequest, user: SystemUser | undefined) {
    const { serverId, memoryLimitBytes } = request;
    const logFile = logFileOf(serverId);
    const output = await openLog(logFile, request.onOutput, request.environment);
    const address = await takeAddress(request, user).catch(async (thrown: unknown) => {
      await output[Symbol.asyncDispose]();
      throw thrown;
    });
    const outcome = await startInTurn({
      command: withSingleuserProgram(fillCommand(request.command, address)),
      environment: {
        ...homeVariables(request, user),
        ...request.environment,
        ...(user === undefined ? {} : { USER: user.name, LOGNAME: user.name }),
        ...request.environmentForUrl(address.listenUrl),
      },
      workingDirectory: request.workingDirectory,
      output,
      tag: logFile,
      user,
      view,
    });
    if (!outcome.started) {
      await address.release();
      await output[Symbol.asyncDispose]();
      throw new HubError('upstream_failed', `The server cannot be started: ${outcome.reason}.`);
    }
    const { process } = outcome;
    const state: LocalServerState = {
      serverId,
      ...process.identity,
      url: address.url,
      logFile,
      ...(address.socket && { socketDirectory: address.socket.directory }),
      ...(memoryLimitBytes !== undefined && { memoryLimitBytes }),
    };
    const server: LiveServer = {
      state,
      process,
      output,
      exit: undefined,
      isEnding: false,
      cleanedUp: process.exited,
    };
    const spawned = follow(server, address.release, user);
    request.onProgress({ progress: 30, message: 'The program is started.' });
    const { ip, signal } = request;
    const isOurs = await watchAddress({
      process,
      address,
      ip,
      signal,
      findStranger: spawned.findStranger ?? (async () => undefined),
      patienceMs,
      view,
    });
    return isOurs ? spawned : undefined;
  }

  return {
    async start(request) {
      const user = await requireUser(request.systemUser);
      await makeDirectory(runtimeDirectory, 0o711);
      await prepareDirectory(request.workingDirectory, user);
      if (!hasStarted.has(request.serverId)) {
        await endLeftovers(request.serverId, request.stopGraceMs);
        hasStarted.add(request.serverId);
      }

      for (let retry = 0; retry < portRetries; retry += 1) {
        const spawned = await attempt(request, user);
        if (spawned !== undefined) return spawned;
        log.warn({ serverId: request.serverId }, 'another program took the port of a server');
        request.onProgress({ progress: 20, message: 'The port was taken; trying another one.' });
      }
      throw new HubError('unavailable', 'Other programs took every port the server was given.');
    },

    discard: (serverId, { graceMs }) => endLeftovers(serverId, graceMs),

    async stop(spawnerState, { graceMs, signal }) {
      const state = readServerState(spawnerState);
      if (state === undefined) return;
      const server = liveOf(state);
      const groupId = isSameProcess(state) ? state.pid : undefined;
      const ending =
        server?.process.stop({ graceMs }) ??
        endProcessGroup({ groupId, tag: state.logFile }, { graceMs, view });
      const { survivors } = await orAbort(ending, signal);
      if (survivors.length > 0) {
        const message = `The processes ${survivors.join(', ')} of the server could not be ended.`;
        throw new HubError('internal', message);
      }
      await server?.cleanedUp;
      if (server === undefined) await addresses.keep(state.url, state.socketDirectory)();
      else if (live.get(state.serverId) === server) live.delete(state.serverId);
    },

    async poll(spawnerState) {
      const state = readServerState(spawnerState);
      if (state === undefined) return { running: false };
      const server = liveOf(state);
      if (server === undefined) return { running: isSameProcess(state) };
      if (server.process.isRunning()) return { running: true };
      return server.exit === undefined ? { running: false } : { running: false, exit: server.exit };
    },

    async restore(spawnerState, { onOutput }) {
      const state = readServerState(spawnerState);
      if (state === undefined || !isSameProcess(state)) return undefined;
      const output = await openLog(state.logFile, onOutput);
      const identity = { pid: state.pid, startTime: state.startTime };
      const process = adoptProcess({ identity, tag: state.logFile, output, view });
      if (process === undefined) {
        await output[Symbol.asyncDispose]();
        return undefined;
      }
      const release = addresses.keep(state.url, state.socketDirectory);
      return follow(
        { state, process, output, exit: undefined, isEnding: false, cleanedUp: process.exited },
        release,
      );
    },

    async usage(states) {
      const pids = states.map((state) => readServerState(state)?.pid ?? 0);
      const usages = await measureUsage(pids.filter((pid) => pid > 0));
      return pids.map((pid) => usages.get(pid));
    },

    async [Symbol.asyncDispose]() {
      guard[Symbol.dispose]();
      await Promise.all([...live.values()].map(({ output }) => output[Symbol.asyncDispose]()));
    },
  };
}

async function requireUser(name: string | undefined): Promise<SystemUser | undefined> {
  if (name === undefined) return undefined;
  const user = await findSystemUser(name);
  if (user === undefined) {
    throw new HubError(
      'upstream_failed',
      `The server cannot be started: there is no system user "${name}".`,
      { hint: 'The operator makes it, or gives the user another account: hub user account.' },
    );
  }
  // The hub has asked before; whatever it thinks, no user gets this machine.
  if (user.userId === 0) throw new HubError('upstream_failed', 'No server runs as root.');
  return user;
}

async function prepareDirectory(path: string, user: SystemUser | undefined): Promise<void> {
  try {
    await makeOwnedDirectory(path, user);
  } catch (thrown) {
    const message = `The directory ${path} of the server cannot be made.`;
    throw new HubError('upstream_failed', message, { cause: thrown });
  }
}

/** A home of its own, because programs fail in odd ways without one. */
function homeVariables(
  request: SpawnRequest,
  user: SystemUser | undefined,
): Record<string, string> {
  if (user === undefined) return { HOME: request.workingDirectory };
  return { HOME: user.home, SHELL: user.shell };
}

/** Fills in where the server is to listen. */
function fillCommand(command: readonly string[], { placeholders }: ServerAddress): string[] {
  return fillGuardedCommand(command, (text) =>
    text.replaceAll(
      /\{(ip|port|socket)\}/g,
      (placeholder, name: string) => placeholders[name] ?? placeholder,
    ),
  );
}

async function orAbort<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(new HubError('internal', 'The server could not be ended in time.'));
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
