import { geteuid } from 'node:process';
import type { Logger } from 'pino';
import type { Environment } from '../client/client-options.ts';
import type { Phrase } from '../platform/texts/text.ts';
import { systemClock } from '../spawning/processes/clock.ts';
import { createFindForeignProcess } from '../spawning/processes/port-owner.ts';
import { newTag, processTagVariable } from '../spawning/processes/process-tag.ts';
import type { AppAddress } from './app-address.ts';
import { appEnvironment, fillCommand } from './app-command.ts';
import type { AppForwarder } from './app-forwarder.ts';
import { endingSignals, startApp } from './app-process.ts';
import { createOwnConnections, type OwnConnections } from './own-connections.ts';
import { waitForApp } from './readiness.ts';

/** The app behind the guard, wherever it listens. */
export interface GuardedApp extends AsyncDisposable {
  /** Exit code of the app; 1 when another program had its port and it did not end by itself. */
  readonly exited: Promise<number>;
  /** Resolves when the app answers. */
  readonly ready: Promise<void>;
  /** Sends requests on to it; undefined until it answers. */
  readonly forwarder: AppForwarder | undefined;
  signal(signal: NodeJS.Signals): void;
}

export interface GuardedAppSettings {
  readonly command: readonly string[];
  readonly prefix: string;
  readonly environment: Environment;
  readonly passesToken: boolean;
  readonly readyPath: string;
  readonly killAfterMs: number;
  /** Whether the app is known to have another program listen for it. */
  readonly listensElsewhere: boolean;
  /** Where it listens first. */
  readonly address: AppAddress;
  /** Where it listens when another program took its port; undefined when there is no other place. */
  readonly nextAddress: (() => Promise<AppAddress>) | undefined;
  readonly createForwarder: (url: string, connections: OwnConnections) => AppForwarder;
  readonly log: Logger;
}

const portAttempts = 3;
const secondLookMs = 200;

/**
 * Starts the app. A port is drawn before the app listens on it, and until then another program can take it:
 * such a one is told from the app, and the app is started again on another port.
 */
export function startGuardedApp(settings: GuardedAppSettings): GuardedApp {
  const { nextAddress, log } = settings;
  const { promise: ready, resolve: becomeReady } = Promise.withResolvers<void>();
  let forwarder: AppForwarder | undefined;
  let isEnding = false;
  let app = start(settings.address);

  async function run(): Promise<number> {
    for (let address = settings.address, attempt = 1; ; attempt += 1) {
      const { code, foreignProcess } = await follow(app, address);
      if (foreignProcess === undefined || isEnding) return code;
      if (nextAddress === undefined || attempt === portAttempts) {
        log.error(
          { reason: foreignProcess },
          'app cannot have its port; where that program listens for the app, say --listens-elsewhere',
        );
        return code;
      }
      log.warn({ reason: foreignProcess }, 'restarting app on another port');
      address = await nextAddress();
      if (isEnding) return code;
      app = start(address);
    }
  }

  function start(address: AppAddress) {
    const { command, prefix, environment, passesToken, killAfterMs } = settings;
    // That of the hub, if there is one: by it the hub finds what the app leaves behind.
    const tag = environment[processTagVariable] || newTag('hub-singleuser');
    const process = startApp({
      command: fillCommand(command, address, prefix),
      environment: {
        ...appEnvironment(environment, address, passesToken),
        [processTagVariable]: tag,
      },
      killAfterMs,
      log,
    });
    const find = createFindForeignProcess({
      accounts: () => [0, geteuid?.()],
      trustsAccounts: settings.listensElsewhere,
    });
    const group = { groupId: process.pid, tag };
    const findForeignProcess = (seen: { isAnswered: boolean; mayBeOld?: boolean }) =>
      find(address.url, group, seen);
    return { process, findForeignProcess };
  }

  /** Waits for the end of the app; `foreignProcess` says who had its port, if that was the cause. */
  async function follow(
    { process, findForeignProcess }: ReturnType<typeof start>,
    address: AppAddress,
  ): Promise<{ readonly code: number; readonly foreignProcess: Phrase | undefined }> {
    const ended = new AbortController();
    const exited = process.exited.finally(() => ended.abort());
    const { url } = address;
    const path = settings.readyPath;
    const seen = await waitForApp({ url, path, findForeignProcess, signal: ended.signal }).catch(
      () => undefined,
    );
    if (seen === undefined) {
      return { code: await exited, foreignProcess: await findRemaining(findForeignProcess) };
    }
    if (seen.foreignProcess !== undefined) {
      process.kill();
      await exited;
      return { code: 1, foreignProcess: seen.foreignProcess };
    }
    await address
      .protect()
      .catch((error: unknown) =>
        log.warn({ err: error }, 'could not protect the socket of the app'),
      );
    const connections = createOwnConnections(address.socketPath !== undefined, () =>
      findForeignProcess({ isAnswered: true, mayBeOld: true }),
    );
    forwarder = settings.createForwarder(url, connections);
    log.info({ prefix: settings.prefix }, 'app ready');
    becomeReady();
    return { code: await exited, foreignProcess: undefined };
  }

  const exited = run();
  return {
    exited,
    ready,
    get forwarder() {
      return forwarder;
    },
    signal(signal) {
      isEnding ||= endingSignals.includes(signal);
      app.process.signal(signal);
    },
    async [Symbol.asyncDispose]() {
      isEnding = true;
      app.process.kill();
      await exited;
      await forwarder?.[Symbol.asyncDispose]();
    },
  };
}

/** Who has the address after the end of the app, unless that is something of its own which is about to end. */
async function findRemaining(
  findForeignProcess: (seen: { isAnswered: boolean }) => Promise<Phrase | undefined>,
): Promise<Phrase | undefined> {
  const first = await findForeignProcess({ isAnswered: false });
  if (first === undefined) return undefined;
  await systemClock.sleep(secondLookMs);
  return findForeignProcess({ isAnswered: false });
}
