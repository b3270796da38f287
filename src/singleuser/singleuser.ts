import { once } from 'node:events';
import { lstat, unlink } from 'node:fs/promises';
import type { Server } from 'node:http';
import type { Logger } from 'pino';
import { type Environment, missing } from '../client/client-options.ts';
import { HubOAuth } from '../client/hub-oauth.ts';
import { createClientAddressReader } from '../platform/http/request-address.ts';
import { jupyterHubSessionIdCookie } from '../platform/protocol/cookie-names.ts';
import type { Forwarding } from '../platform/protocol/identity-headers.ts';
import { createRoute } from '../traffic/proxy/route.ts';
import { parseUpstreamAddress } from '../traffic/proxy/upstream-address.ts';
import { type ActivityReport, createActivityReport } from './activity-report.ts';
import { reportAddress } from './address-report.ts';
import { choosePort, chooseSocket } from './app-address.ts';
import { fillCommand } from './app-command.ts';
import { createAppForwarder } from './app-forwarder.ts';
import { answerFailure, createGuardServer, localPeers } from './guard-server.ts';
import { type GuardedApp, startGuardedApp } from './guarded-app.ts';

/** What the command line says. */
export interface SingleuserOptions {
  readonly command: readonly string[];
  /** Where to listen; HUB_SERVICE_URL unless given. */
  readonly url?: string | undefined;
  /** Port of the app; a free one unless given. */
  readonly port?: number | undefined;
  /** Whether the app listens on a Unix socket instead of a port. */
  readonly usesSocket: boolean;
  /** Whether a program that the app did not start listens on its port. */
  readonly listensElsewhere: boolean;
  readonly stripsPrefix: boolean;
  readonly forwarding?: Forwarding | undefined;
  readonly passesToken: boolean;
  /** Path, below the prefix, that is asked for until it answers. */
  readonly readyPath: string;
  /** How long an answer of the hub about a visitor is used again. */
  readonly cacheMaxAgeSeconds: number;
  readonly killAfterSeconds: number;
}

/** A guarded app that runs. */
export interface Singleuser extends AsyncDisposable {
  /** Exit code of the app, or 1 when it could not have its port. */
  readonly exited: Promise<number>;
  /** Resolves when the app answers. */
  readonly ready: Promise<void>;
  readonly server: Server;
  signal(signal: NodeJS.Signals): void;
}

/** Starts the guard, then the app behind it. Throws TypeError for a setup that cannot work. */
export async function startSingleuser(
  options: SingleuserOptions,
  { environment, log }: { readonly environment: Environment; readonly log: Logger },
): Promise<Singleuser> {
  const hubAuth = new HubOAuth({ environment, cache_max_age: options.cacheMaxAgeSeconds });
  const serviceUrl = options.url ?? environment['HUB_SERVICE_URL'];
  if (!serviceUrl) throw missing('--url', 'HUB_SERVICE_URL');
  const prefix = hubAuth.service_prefix;

  await using disposables = new AsyncDisposableStack();
  const address = disposables.use(
    options.usesSocket ? await chooseSocket() : await choosePort(options.port),
  );
  // Said before anything is started.
  fillCommand(options.command, address, prefix);
  let app: GuardedApp | undefined;
  const lastTrafficMs = () => app?.forwarder?.lastTrafficMs();
  const activity = startActivityReport({ hubAuth, environment, lastTrafficMs, log });
  if (activity !== undefined) disposables.use(activity);

  // What connects here is the hub's gateway, or is on the same machine.
  const readClient = createClientAddressReader(localPeers, {
    trustForwardedHost: true,
  });
  const { stripsPrefix, forwarding } = options;
  const guard = createGuardServer({
    hubAuth,
    forwarder: () => app?.forwarder,
    stripsPrefix,
    identityHeaders: forwarding?.identity_headers ?? {},
    onTraffic: () => activity?.touch(),
    log,
  });
  const { server } = guard;
  await listen(server, serviceUrl);
  disposables.defer(() => guard.close(0));
  const addressUrl = environment['HUB_ADDRESS_URL'];
  const port = ownPortOf(server, serviceUrl);
  if (addressUrl && port !== undefined) {
    const ended = new AbortController();
    disposables.defer(() => ended.abort());
    void reportAddress({
      url: addressUrl,
      token: hubAuth.api_token,
      port,
      signal: ended.signal,
      log,
    });
  }

  app = disposables.use(
    startGuardedApp({
      command: options.command,
      prefix,
      environment,
      passesToken: options.passesToken,
      readyPath: (stripsPrefix ? '/' : prefix) + options.readyPath.replace(/^\/+/, ''),
      killAfterMs: options.killAfterSeconds * 1000,
      listensElsewhere: options.listensElsewhere,
      address,
      nextAddress:
        options.usesSocket || options.port !== undefined ? undefined : () => choosePort(),
      createForwarder(target, connections) {
        const route = createRoute(
          {
            prefix,
            target,
            stripsPrefix,
            forwarding,
            // The app never sees the hub's cookies, as behind a gateway that guards it.
            access: 'gateway',
            owner: { kind: 'extra' },
            cookieName: hubAuth.cookie_name,
            sessionIdAliases: [jupyterHubSessionIdCookie],
          },
          performance.now(),
        );
        const answerError = answerFailure;
        return createAppForwarder({ route, connections, readClient, answerError, log });
      },
      log,
    }),
  );

  const { exited, ready, signal } = app;
  const started = disposables.move();
  return {
    exited,
    ready,
    server,
    signal,
    async [Symbol.asyncDispose]() {
      await activity?.send();
      await started.disposeAsync();
    },
  };
}

function startActivityReport({
  hubAuth,
  environment,
  lastTrafficMs,
  log,
}: {
  readonly hubAuth: HubOAuth;
  readonly environment: Environment;
  readonly lastTrafficMs: () => number | undefined;
  readonly log: Logger;
}): ActivityReport | undefined {
  const userName = environment['HUB_USER'];
  const url =
    environment['HUB_ACTIVITY_URL'] ||
    (userName && `${hubAuth.api_url}/users/${encodeURIComponent(userName)}/activity`);
  const intervalSeconds = Number(environment['HUB_ACTIVITY_INTERVAL'] || 300);
  if (!url || !(intervalSeconds > 0)) return undefined;
  return createActivityReport({
    url,
    token: hubAuth.api_token,
    serverName: environment['HUB_SERVER_NAME'] ?? '',
    intervalMs: intervalSeconds * 1000,
    lastTrafficMs,
    log,
  });
}

async function listen(server: Server, serviceUrl: string): Promise<void> {
  const { protocol, hostname, port, socketPath } = parseUpstreamAddress(serviceUrl);
  if (protocol !== 'http:') throw new TypeError('HUB_SERVICE_URL must begin with http');
  if (socketPath === undefined) server.listen(port, hostname);
  else {
    await removeStaleSocket(socketPath);
    server.listen(socketPath);
  }
  await once(server, 'listening');
}

/** The port that the system chose, where it was to choose one. */
function ownPortOf(server: Server, serviceUrl: string): number | undefined {
  const { port, socketPath } = parseUpstreamAddress(serviceUrl);
  const address = server.address();
  const isOwn = socketPath === undefined && port === 0 && typeof address === 'object';
  return isOwn ? address?.port : undefined;
}

/** What a killed predecessor left; nothing but a socket is ever removed. */
async function removeStaleSocket(path: string): Promise<void> {
  const file = await lstat(path).catch(() => undefined);
  if (file?.isSocket() === true) await unlink(path);
}
