import { join } from 'node:path';
import { geteuid } from 'node:process';
import { HubError } from '../../platform/errors.ts';
import { makeDirectory } from '../../platform/files/make-directory.ts';
import { isSameProcess } from '../../platform/process-table/process-table.ts';
import { type Text, text } from '../../platform/texts/text.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { ServerExit, SpawnedServer, Spawner, SpawnerHost } from '../../plugin/host/spawner.ts';
import { type CgroupLimits, type Cgroups, systemCgroups } from '../processes/cgroup.ts';
import { systemClock } from '../processes/clock.ts';
import { type OutputLog, openOutputLog } from '../processes/output-log.ts';
import { createFindForeignProcess } from '../processes/port-owner.ts';
import { endFamily, endProcessGroup } from '../processes/process-group.ts';
import { newTag } from '../processes/process-tag.ts';
import { createServerMeter } from '../processes/process-usage.ts';
import { createSharedView, type ProcessView } from '../processes/process-view.ts';
import { withSingleuserProgram } from '../processes/singleuser-program.ts';
import { adoptProcess, type SupervisedProcess } from '../processes/supervised-process.ts';
import type { SystemUser } from '../processes/system-user.ts';
import type { WarmPool } from '../processes/warm-pool.ts';
import { outOfMemory } from '../spawner-texts.ts';
import { createLimitEvents, type LimitedServer, noEvents, reasonOfEnd } from './limit-events.ts';
import { createMemoryGuard } from './memory-guard.ts';
import { orAbort } from './or-abort.ts';
import { createAddressBook, type ServerAddress } from './server-address.ts';
import { type LocalServerState, readServerState, tagFamilyOf } from './server-state.ts';
import { createTurns } from './start-in-turn.ts';
import {
  asksForSocket,
  cgroupLimitsOf,
  fillCommand,
  homeVariables,
  prepareFolders,
  requireLocal,
  requireUser,
} from './start-request.ts';
import { watchAddress } from './watch-address.ts';

export interface LocalProcessSpawnerOptions {
  readonly log: SpawnerHost['log'];
  readonly hubId: string;
  readonly runtimeDirectory: string;
  readonly logDirectory: string;
  readonly memoryCheckMs: number;
  /** Those of this machine unless given. */
  readonly cgroups?: Cgroups;
  /** How long a start waits to see the server listen; a slower one is let be. Default 3 s. */
  readonly listenPatienceMs?: number;
  readonly view?: ProcessView;
  /** Ends with the spawner. */
  readonly pool?: WarmPool | undefined;
}

/** A server this hub started or found again. */
interface LiveServer extends LimitedServer {
  readonly state: LocalServerState;
  readonly process: SupervisedProcess;
  readonly output: OutputLog;
  exit: ServerExit | undefined;
  isEnding: boolean;
  /** Why the hub has ended it. */
  endReason: Text | undefined;
  /** Resolves when it has ended and its address and output are given back; never rejects. */
  cleanedUp: Promise<unknown>;
}

const portRetries = 3;

/** Creates the spawner of local processes. Disposing of it leaves the servers running. */
export function createLocalProcessSpawner(options: LocalProcessSpawnerOptions): Spawner {
  const { log, hubId, runtimeDirectory, logDirectory } = options;
  const { listenPatienceMs: patienceMs = 3_000 } = options;
  const { cgroups = systemCgroups, view = createSharedView() } = options;
  const { monotonicMs } = systemClock;
  let isUnenforcedReported = false;
  const addresses = createAddressBook((folder, err) =>
    log.warn({ folder, err }, 'socket folder left behind'),
  );
  const startInTurn = createTurns();
  const measureServers = createServerMeter({ view, cgroups });
  const live = new Map<string, LiveServer>();
  const guard = createMemoryGuard({
    servers: guardedServers,
    intervalMs: options.memoryCheckMs,
    log,
  });
  const limitEvents = createLimitEvents({
    // Of others no cgroup counts anything.
    servers: () =>
      [...live.values()].filter(
        ({ exit, limits: { memoryBytes, processes } }) =>
          exit === undefined && (memoryBytes ?? processes) !== undefined,
      ),
    cgroups,
    intervalMs: options.memoryCheckMs,
    monotonicMs,
  });

  const logFileOf = (serverId: string): string => join(logDirectory, `server-${serverId}.log`);

  function liveOf(state: LocalServerState): LiveServer | undefined {
    const server = live.get(state.serverId);
    return server?.process.identity.startTime === state.startTime ? server : undefined;
  }

  function guardedServers() {
    return [...live.values()].flatMap((server) => {
      const { pid, memoryLimitBytes, isMemoryHeld = false } = server.state;
      if (
        isMemoryHeld ||
        memoryLimitBytes === undefined ||
        server.isEnding ||
        server.exit !== undefined
      )
        return [];
      const onExceeded = (reason: Text) => void endExceeding(server, reason);
      return [{ pid, limitBytes: memoryLimitBytes, onExceeded }];
    });
  }

  async function endExceeding(server: LiveServer, reason: Text): Promise<void> {
    server.isEnding = true;
    server.endReason = outOfMemory(server.limits.memoryBytes);
    log.warn({ serverId: server.state.serverId, reason }, 'ending server over memory limit');
    await server.output.note(`the server is ended: ${reason}`).catch(() => undefined);
    await server.process.stop({ graceMs: 2_000 });
  }

  /** What the last lines of its output say, too. */
  function noteIn({ state, output }: Pick<LiveServer, 'state' | 'output'>, message: string): void {
    log.warn({ serverId: state.serverId, reason: message }, 'server hit its limits');
    output.note(message).catch(() => undefined);
  }

  function liveServer(given: Pick<LiveServer, 'state' | 'process' | 'output'>): LiveServer {
    const { memoryLimitBytes, processLimit, isMemoryHeld = false } = given.state;
    const { tag } = given.state;
    const server: LiveServer = {
      ...given,
      ...noEvents,
      tag,
      limits: {
        ...(memoryLimitBytes !== undefined && { memoryBytes: memoryLimitBytes }),
        ...(processLimit !== undefined && { processes: processLimit }),
      },
      // What was counted for an earlier hub was told by it.
      ...(isMemoryHeld && { reported: cgroups.events(tag) ?? noEvents.reported }),
      onEvent: (message) => noteIn(given, message),
      exit: undefined,
      isEnding: false,
      endReason: undefined,
      cleanedUp: given.process.exited,
    };
    return server;
  }

  /** Says once that limits are not held as they should be. */
  function tellUnheld(wanted: CgroupLimits, held: ReadonlySet<string>): void {
    const unenforced = Object.keys(wanted).filter((limit) => !held.has(limit));
    if (unenforced.length === 0 || isUnenforcedReported) return;
    isUnenforcedReported = true;
    log.warn(
      { unenforced, memoryCheckMs: options.memoryCheckMs },
      'the hub can write no cgroup for these limits of servers: memory is polled, processors and processes are not ' +
        'limited; see "Limits that hold" in docs/how-to/run-other-apps.md',
    );
  }

  function follow(
    server: LiveServer,
    release: () => Promise<void>,
    user?: SystemUser,
  ): SpawnedServer {
    const { state, process, output } = server;
    const group = { groupId: process.identity.pid, tag: state.tag };
    const findForeignProcess = createFindForeignProcess({
      view,
      accounts: () => [0, user?.userId ?? geteuid?.()],
    });
    live.set(state.serverId, server);
    const exited = process.exited.then(async (exit) => {
      const reason = server.endReason ?? reasonOfEnd(server, exit, monotonicMs());
      const ended = {
        code: exit.code,
        signal: exit.signal,
        ...(reason !== undefined && { reason }),
      };
      server.exit = ended;
      if (reason !== undefined && !server.isEnding) {
        await output.note(`the server is ended: ${reason}`).catch(() => undefined);
      }
      await release();
      await output[Symbol.asyncDispose]();
      return ended;
    });
    server.cleanedUp = exited;
    const { url } = state;
    return {
      url,
      state,
      findForeignProcess: (seen) => findForeignProcess(url, group, seen),
      exited,
    };
  }

  /** Ends what a hub of this machine started and could not write down any more. */
  async function endLeftovers(
    serverId: string,
    options: { graceMs: number; isThorough: boolean; mayEnd: () => boolean },
  ): Promise<void> {
    const family = tagFamilyOf(hubId, serverId);
    const survivors = await endFamily(family, { ...options, view, cgroups });
    if (survivors.length > 0) {
      log.warn({ serverId, survivors }, 'leftovers of earlier start could not be ended');
    }
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
    return request.socket || asksForSocket(request.command)
      ? addresses.takeSocket(runtimeDirectory, user)
      : addresses.takePort(request.ip);
  }

  /** Starts the command once; undefined when its port was taken before it could listen. */
  async function attempt(request: SpawnRequest, user: SystemUser | undefined) {
    const { serverId, limits, signal: givenUp } = request;
    const tag = newTag(tagFamilyOf(hubId, serverId));
    const cgroupLimits = cgroupLimitsOf(limits);
    const logFile = logFileOf(serverId);
    const output = await openLog(logFile, request.onOutput, request.environment);
    const address = await takeAddress(request, user).catch(async (thrown: unknown) => {
      await output[Symbol.asyncDispose]();
      throw thrown;
    });
    const outcome = await startInTurn({
      pool: options.pool,
      command: withSingleuserProgram(fillCommand(request.command, address)),
      environment: {
        ...homeVariables(request, user),
        ...request.environment,
        ...(user === undefined ? {} : { USER: user.name, LOGNAME: user.name }),
        ...request.environmentForUrl(address.listenUrl),
      },
      workingDirectory: request.workingDirectory,
      output,
      tag,
      limits: cgroupLimits,
      cgroups,
      user,
      refusal() {
        if (givenUp.aborted) return text`the start was given up`;
        if (request.isOurs()) return undefined;
        return text`another instance of the hub may have it by now`;
      },
      view,
    });
    if (!outcome.started) {
      await address.release();
      await output[Symbol.asyncDispose]();
      throw new HubError('upstream_failed', text`The server cannot be started: ${outcome.reason}.`);
    }
    const { process, held } = outcome;
    tellUnheld(cgroupLimits, held);
    const state: LocalServerState = {
      serverId,
      ...process.identity,
      url: address.url,
      logFile,
      tag,
      ...(address.socket && { socketDirectory: address.socket.directory }),
      ...(limits.memoryBytes !== undefined && { memoryLimitBytes: limits.memoryBytes }),
      ...(limits.processes !== undefined && { processLimit: limits.processes }),
      ...(held.has('memoryBytes') && { isMemoryHeld: true }),
    };
    const server = liveServer({ state, process, output });
    const spawned = follow(server, address.release, user);
    request.onProgress({ progress: 30, message: text`The program is started.` });
    const { ip } = request;
    const isOurs = await watchAddress({
      process,
      address,
      ip,
      signal: givenUp,
      findForeignProcess: spawned.findForeignProcess ?? (async () => undefined),
      patienceMs,
      view,
    });
    return isOurs ? spawned : undefined;
  }

  return {
    async start(request) {
      requireLocal(request);
      const user = await requireUser(request.systemUser);
      await makeDirectory(runtimeDirectory, 0o711);
      await prepareFolders(request.workingDirectory, user, { runtimeDirectory, logDirectory });
      // Whatever runs of a server that has just been taken for a start is of none that counts.
      const { serverId, isOurs: mayEnd, stopGraceMs: graceMs } = request;
      await endLeftovers(serverId, { graceMs, isThorough: false, mayEnd });

      for (let retry = 0; retry < portRetries; retry += 1) {
        const spawned = await attempt(request, user);
        if (spawned !== undefined) return spawned;
        log.warn({ serverId: request.serverId }, 'port of server taken by foreign process');
        request.onProgress({
          progress: 20,
          message: text`The port was taken; trying another one.`,
        });
      }
      throw new HubError('unavailable', text`Other programs took every port the server was given.`);
    },

    async discard(serverId, { graceMs, isOurs: mayEnd }) {
      await endLeftovers(serverId, { graceMs, isThorough: true, mayEnd });
    },

    async stop(spawnerState, { graceMs, signal }) {
      const state = readServerState(spawnerState);
      if (state === undefined) return;
      const server = liveOf(state);
      const groupId = isSameProcess(state) ? state.pid : undefined;
      const ending =
        server?.process.stop({ graceMs }) ??
        endProcessGroup({ groupId, tag: state.tag }, { graceMs, view });
      const { survivors } = await orAbort(ending, signal);
      if (survivors.length > 0) {
        const message = text`The processes ${survivors.join(', ')} of the server could not be ended.`;
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
      const process = adoptProcess({ identity, tag: state.tag, output, view });
      if (process === undefined) {
        await output[Symbol.asyncDispose]();
        return undefined;
      }
      const release = addresses.keep(state.url, state.socketDirectory);
      return follow(liveServer({ state, process, output }), release);
    },

    async usage(states) {
      const known = states.map(readServerState);
      const servers = known.filter((state) => state !== undefined);
      const usages = await measureServers(servers);
      return known.map((state) => state && usages.get(state.pid));
    },

    async [Symbol.asyncDispose]() {
      options.pool?.[Symbol.dispose]();
      guard[Symbol.dispose]();
      limitEvents[Symbol.dispose]();
      await Promise.all([...live.values()].map(({ output }) => output[Symbol.asyncDispose]()));
    },
  };
}
