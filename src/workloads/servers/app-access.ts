import type { SpawnerConfig } from '../../platform/config/config.ts';
import { forwardingOf } from '../../platform/protocol/identity-headers.ts';
import type { SpawnerState } from '../../plugin/host/spawner.ts';
import type { Route } from '../../traffic/proxy/route.ts';
import { isRescueState } from './spawner-set.ts';

/** How visitors reach the app of a server. */
export interface AppAccess extends Pick<Route, 'stripsPrefix' | 'forwarding' | 'limits'> {
  readonly access: 'server' | 'gateway';
  /** Below the prefix, with a slash at its beginning. */
  readonly readyPath: string;
  /** Where Jupyter lists its kernels, likewise. */
  readonly kernelsPath: string | undefined;
}

/** What the profile of a server says, else what holds for all. */
export function appAccessOf(
  config: SpawnerConfig,
  {
    userOptions,
    spawnerState = {},
  }: {
    readonly userOptions: Readonly<Record<string, unknown>>;
    readonly spawnerState?: SpawnerState;
  },
): AppAccess {
  const profile = config.profiles.find(({ name }) => name === userOptions['profile']);
  const access = profile?.access ?? config.access;
  const isGateway = access === 'gateway';
  // The file browser of a full home knows its prefix, whatever the app in its place does.
  const isRescue = isRescueState(spawnerState);
  return {
    access,
    readyPath: profile?.ready_path ?? config.ready_path,
    kernelsPath: profile?.kernels_path ?? config.kernels_path,
    stripsPrefix: isGateway && !isRescue && (profile?.strip_prefix ?? config.strip_prefix),
    forwarding: forwardingOf({
      headers: profile?.headers ?? config.headers,
      ...(isGateway && {
        host: profile?.host ?? config.host,
        identity_headers: profile?.identity_headers ?? config.identity_headers,
      }),
    }),
    limits: profile?.limits ?? config.limits,
  };
}
