import type { ContainerInspectInfo } from 'dockerode';
import { createLimiter } from '../../platform/concurrency/limiter.ts';
import { createPeriodic } from '../../platform/concurrency/periodic.ts';
import { HubError } from '../../platform/errors.ts';
import { type Phrase, text } from '../../platform/texts/text.ts';
import type { SpawnRequest } from '../../plugin/host/spawn-request.ts';
import type { ServerExit, SpawnedServer, Spawner, SpawnerHost } from '../../plugin/host/spawner.ts';
import { chooseImage, imageForm } from '../images/choose-image.ts';
import { createAddressBook, type ServerAddress } from '../local-process/server-address.ts';
import { containerStarted } from '../spawner-texts.ts';
import { createContainerEvents } from './container-events.ts';
import { type ContainerState, readContainerState } from './container-state.ts';
import { createContainerUsage } from './container-usage.ts';
import { createContainers } from './containers.ts';
import { createRequest, gpusOf, hubLabels, isRootUser } from './create-request.ts';
import type { DockerOptions, DockerProfileOptions } from './docker-options.ts';
import { createEngine } from './engine.ts';
import { engineMessage, explainRefusal, isEngineAnswer, isUnreachable } from './engine-errors.ts';
import { createEngineLimits } from './engine-limits.ts';
import { examineEngine, imagesOf } from './examine-engine.ts';
import { findForeignProcessOf } from './host-network.ts';
import { createImages, type EngineImage, withTag } from './images.ts';
import { createPullAhead } from './pull-ahead.ts';
import { type Reach, urlOf } from './server-url.ts';
import { createVolumes } from './volumes.ts';
import { readCondition, watchContainer } from './watch-container.ts';

type DockerRequest = SpawnRequest<DockerProfileOptions>;

/** A server this hub started or found again. */
interface LiveContainer {
  readonly state: ContainerState;
  /** Gives the port back; idempotent. */
  readonly release: () => Promise<void>;
  readonly leave: AbortController;
  /** Tells of an end that the hub itself brought about, which the engine may tell of late or not at all. */
  readonly tellEnd: (exit: ServerExit) => void;
}

const parallelStarts = 2;
const sweepIntervalMs = 60_000;

/** Creates the spawner of containers. Disposing of it leaves the servers running. */
export function createDockerSpawner(
  options: DockerOptions,
  {
    log,
    hubId,
    activeServers,
    directory,
  }: Pick<SpawnerHost, 'log' | 'hubId' | 'activeServers' | 'directory'>,
): Spawner<DockerProfileOptions> {
  const engine = createEngine(options, directory);
  const containers = createContainers(engine, hubId, log);
  const events = createContainerEvents(engine, hubId);
  const images = createImages(engine, options);
  const limits = createEngineLimits(engine);
  const measureUsage = createContainerUsage(engine);
  const addresses = createAddressBook();
  const volumes = createVolumes(engine, hubId);
  const inTurn = createLimiter(parallelStarts);
  const live = new Map<string, LiveContainer>();
  const form = imageForm(options);
  let pullingAhead: AsyncDisposable | undefined;
  const sweeping = createPeriodic({
    intervalMs: sweepIntervalMs,
    work: removeOrphans,
    onError: (error) =>
      log.warn({ reason: engineMessage(error) }, 'could not look for orphaned containers'),
  });

  /** Removes what was left running while its server counts as stopped, or is deleted. */
  async function removeOrphans(): Promise<void> {
    const all = await containers.list();
    const unknown = all.filter(
      ({ Id, State }) =>
        !live.has(Id) && (options.remove || State === 'running' || State === 'paused'),
    );
    if (unknown.length === 0) return;
    const serverIdOf = (each: (typeof unknown)[number]) => each.Labels[hubLabels.serverId] ?? '';
    // Asked after the list: a container that is on it and whose server is not active by now is left over.
    const active = await activeServers(unknown.map(serverIdOf));
    for (const each of unknown) {
      if (active.has(serverIdOf(each))) continue;
      await containers.remove(each.Id);
      log.warn({ container: each.Id, serverId: serverIdOf(each) }, 'orphaned container removed');
    }
  }

  function reachOf(network: string, remoteHost: string | undefined): Reach {
    return {
      usesInternalIp: options.use_internal_ip,
      connectHost: options.connect_host ?? remoteHost,
      network,
      port: options.port,
    };
  }

  function follow(
    state: ContainerState,
    isNew: boolean,
    {
      onOutput,
      release,
      image,
    }: {
      readonly onOutput: DockerRequest['onOutput'];
      readonly release: () => Promise<void>;
      readonly image?: { readonly name: string; readonly mismatch: Phrase | undefined };
    },
  ): SpawnedServer {
    const { container, url } = state;
    const leave = new AbortController();
    const ending = Promise.withResolvers<ServerExit>();
    const { promise: ended, resolve: onEnd } = Promise.withResolvers<void>();
    live.set(container, { state, release, leave, tellEnd: ending.resolve });
    const movedExit = (info: ContainerInspectInfo) => movedExitOf(state, info);
    const watched = { container, isNew, onOutput, movedExit, onEnd, signal: leave.signal };
    const watching = watchContainer(watched, { engine, events, log }).then((exit): ServerExit => {
      if (exit.code === 0 || exit.reason !== undefined || image?.mismatch === undefined)
        return exit;
      return { ...exit, reason: image.mismatch };
    });
    return { url, state, exited: Promise.race([watching, ending.promise]), ended };
  }

  async function forget(container: string): Promise<void> {
    const server = live.get(container);
    live.delete(container);
    server?.tellEnd({ code: null, signal: null });
    server?.leave.abort();
    await server?.release();
  }

  async function takePort(network: string): Promise<ServerAddress | undefined> {
    return network === 'host' ? addresses.takePort('127.0.0.1') : undefined;
  }

  /** Creates and starts the container; when that fails, nothing is left of it. */
  async function launch(
    request: DockerRequest,
    {
      image,
      found,
      network,
      address,
    }: {
      readonly image: string;
      readonly found: EngineImage;
      readonly network: string;
      readonly address: ServerAddress | undefined;
    },
  ): Promise<SpawnedServer> {
    const { signal, serverId, objectName, onOutput, onProgress } = request;
    const name = `${options.name_prefix}-${hubId.slice(0, 8)}-${objectName}`;
    const listen =
      address?.port === undefined
        ? { ip: '0.0.0.0', port: options.port, isPublished: !options.use_internal_ip }
        : { ip: '127.0.0.1', port: address.port, isPublished: false };
    // What an earlier start left, and could not be removed then.
    for (const { Id } of await containers.list(serverId)) await containers.remove(Id);
    const body = createRequest({ request, options, hubId, name, image, network, listen });
    await refused(image, () => volumes.ensure(request));
    const created = await refused(image, () =>
      engine.call((docker, abortSignal) => docker.createContainer({ ...body, abortSignal }), {
        signal,
      }),
    );
    const container = created.id;
    try {
      await refused(image, () =>
        engine.call(
          (docker, abortSignal) => docker.getContainer(container).start({ abortSignal }),
          {
            signal,
          },
        ),
      );
      onProgress({
        progress: 50,
        phase: 'starting',
        message: containerStarted,
      });
      const { info } = await readCondition(engine, container, signal);
      const url = address?.url ?? (await addressIn(info, network));
      const state: ContainerState = { container, serverId, url };
      const release = async () => address?.release();
      const mismatch = await limits.architectureProblem(image, found);
      const server = follow(state, true, { onOutput, release, image: { name: image, mismatch } });
      signal.throwIfAborted();
      const findForeignProcess =
        network === 'host' ? findForeignProcessOf(name, url, info?.State.Pid) : undefined;
      return findForeignProcess === undefined ? server : { ...server, findForeignProcess };
    } catch (thrown) {
      await forget(container);
      await containers
        .remove(container)
        .catch((error: unknown) =>
          log.warn({ container, reason: engineMessage(error) }, 'container left for later removal'),
        );
      throw thrown;
    }
  }

  async function addressIn(
    info: ContainerInspectInfo | undefined,
    network: string,
  ): Promise<string> {
    const url = info && urlOf(info, reachOf(network, await engine.remoteHost()));
    if (url !== undefined) return url;
    // A container that ended at once has no address any more: that is told by how it ended.
    if (info !== undefined && info.State.Status !== 'running') return 'http://127.0.0.1:1';
    throw new HubError(
      'upstream_failed',
      text`The container engine gave the container no address.`,
      {
        hint: text`The administrator must check DockerSpawner.network and use_internal_ip.`,
      },
    );
  }

  return {
    needsReachableHub: options.network !== 'host',
    reach: 'anywhere',
    ...(form === undefined ? {} : { optionsForm: form }),

    async open(known) {
      // Before the hub listens: loaded later, it would keep visitors waiting.
      await engine.load();
      // Without waiting: an engine that is down must not keep the hub from starting.
      void sweeping.run();
      if (!options.pull_ahead) return;
      const wanted = imagesOf(options, [...(known?.profileOptions.values() ?? [])]);
      pullingAhead = createPullAhead(wanted, { images, log });
    },

    async start(request) {
      const { signal, profileOptions } = request;
      signal.throwIfAborted();
      requireKnown(request);
      const image = withTag(chooseImage(request, options, 'DockerSpawner'));
      const network = profileOptions.network ?? options.network;
      const policy = profileOptions.pull_policy ?? options.pull_policy;
      await limits.require(request.limits, signal);
      if (gpusOf(request, options) !== undefined) await limits.requireGpus(signal);
      const found = await images.ensure({ image, policy, signal, onProgress: request.onProgress });
      if (!options.allow_root)
        requireNoRoot(profileOptions.user ?? options.user ?? found.user, image);
      request.onProgress({
        progress: 45,
        phase: 'starting',
        message: text`Creating the container.`,
      });
      const address = await takePort(network);
      try {
        return await inTurn(() => launch(request, { image, found, network, address }), signal);
      } catch (thrown) {
        await address?.release();
        signal.throwIfAborted();
        throw thrown;
      }
    },

    async discard(serverId, { graceMs }) {
      for (const { Id } of await containers.list(serverId)) {
        await containers.end(Id, { graceMs, removes: true });
        await forget(Id);
      }
    },

    async delete(server, { withUser, signal }) {
      for (const { Id } of await containers.list(server.serverId)) await containers.remove(Id);
      if (options.delete_volumes) await volumes.remove(server, { withUser, signal });
    },

    async stop(spawnerState, { graceMs, signal }) {
      const state = readContainerState(spawnerState);
      if (state === undefined) return;
      await containers.end(state.container, { graceMs, signal, removes: options.remove });
      await forget(state.container);
    },

    async poll(spawnerState) {
      const state = readContainerState(spawnerState);
      if (state === undefined) return { running: false };
      try {
        const condition = await readCondition(engine, state.container);
        if (!condition.running) return { running: false, exit: condition.exit };
        const exit = condition.info && (await movedExitOf(state, condition.info));
        return exit === undefined ? { running: true } : { running: false, exit };
      } catch (thrown) {
        if (!isUnreachable(thrown) && !isEngineAnswer(thrown)) throw thrown;
        return { running: 'unknown', reason: engineMessage(thrown) };
      }
    },

    async restore(spawnerState, { onOutput }) {
      const state = readContainerState(spawnerState);
      if (state === undefined) return undefined;
      const { running, info } = await readCondition(engine, state.container);
      if (!running || info === undefined || !isOurs(info, state, hubId)) return undefined;
      if ((await movedExitOf(state, info)) !== undefined) return undefined;
      const isOfHost = info.HostConfig.NetworkMode === 'host';
      const release = isOfHost ? addresses.keep(state.url, undefined) : async () => undefined;
      const server = follow(state, false, { onOutput, release });
      const findForeignProcess = isOfHost
        ? findForeignProcessOf(info.Name.slice(1), state.url, info.State.Pid)
        : undefined;
      return findForeignProcess === undefined ? server : { ...server, findForeignProcess };
    },

    examine: (asked) => examineEngine({ engine, images, limits, options }, asked),

    async pause(spawnerState) {
      const state = readContainerState(spawnerState);
      if (state !== undefined) await containers.setPaused(state.container, true);
      return state !== undefined;
    },

    async unpause(spawnerState) {
      const state = readContainerState(spawnerState);
      if (state !== undefined) await containers.setPaused(state.container, false);
    },

    usage: (states) => measureUsage(states.map((state) => readContainerState(state)?.container)),

    async [Symbol.asyncDispose]() {
      await Promise.all([sweeping, pullingAhead].map((each) => each?.[Symbol.asyncDispose]()));
      for (const { leave } of live.values()) leave.abort();
      events[Symbol.dispose]();
    },
  };

  /** What ends a server whose container has another address than the one that visitors are sent to. */
  async function movedExitOf(
    state: ContainerState,
    info: ContainerInspectInfo,
  ): Promise<ServerExit | undefined> {
    if (info.HostConfig.NetworkMode === 'host') return undefined;
    const network = info.HostConfig.NetworkMode ?? options.network;
    if (urlOf(info, reachOf(network, await engine.remoteHost())) === state.url) return undefined;
    const reason = text`its container was restarted and has another address`;
    return { code: null, signal: null, reason };
  }
}

/** Whether a container is the one of a stored state, and of this hub. */
function isOurs(
  { Config }: ContainerInspectInfo,
  { serverId }: ContainerState,
  hubId: string,
): boolean {
  return Config.Labels[hubLabels.hub] === hubId && Config.Labels[hubLabels.serverId] === serverId;
}

function requireKnown({ systemUser, socket }: DockerRequest): void {
  if (systemUser !== undefined) {
    throw new HubError('internal', text`Servers in containers know no system users.`, {
      hint: text`The administrator must remove Spawner.system_user and may set DockerSpawner.user.`,
    });
  }
  if (socket) {
    throw new HubError('internal', text`Servers in containers cannot listen on a Unix socket.`, {
      hint: text`The administrator must remove Spawner.socket.`,
    });
  }
}

function requireNoRoot(user: string, image: string): void {
  if (!isRootUser(user)) return;
  throw new HubError(
    'internal',
    text`The server is not started: it would run as root in ${image}.`,
    {
      hint: text`The administrator must set DockerSpawner.user, such as "1000:1000", or allow_root.`,
    },
  );
}

async function refused<Result>(image: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    throw isEngineAnswer(thrown) ? explainRefusal(thrown, image) : thrown;
  }
}
