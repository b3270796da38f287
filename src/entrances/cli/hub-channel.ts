import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pino } from 'pino';
import {
  createChannelCaller,
  type InstanceAddress,
} from '../../cluster/instances/channel-caller.ts';
import { channelPath, createChannelSignature } from '../../cluster/instances/channel-signature.ts';
import type { Instance } from '../../cluster/instances/instance.ts';
import { urlFrom } from '../../cluster/instances/instance-directory.ts';
import type { Config } from '../../platform/config/config.ts';
import { loadCookieSecrets } from '../../platform/config/cookie-secret.ts';
import { HubError } from '../../platform/errors.ts';
import { createInternalAuthority } from '../../platform/internal-tls/internal-authority.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { createSettingStore } from '../../platform/store/setting-store.ts';
import { readMachineId } from '../../spawning/processes/machine-id.ts';

/** Asks running hubs as their instances ask each other, with the key of `Hub.cookie_secret`. */
export interface HubChannel {
  readonly here: Pick<Instance, 'id' | 'machineId'>;
  /** Whether a hub with the same key answers where this one is. */
  answers(instance: Instance): Promise<boolean>;
  /** Throws what the hub threw, and `unavailable` with the reason where it does not answer. */
  call(
    instance: Instance,
    operation: string,
    params?: unknown,
    options?: { readonly timeoutMs?: number },
  ): Promise<unknown>;
}

export function createHubChannel(
  config: Pick<Config, 'Hub' | 'directory' | 'basePath'>,
  database: HubDatabase,
): HubChannel {
  const secretFile = resolve(config.directory, config.Hub.cookie_secret_file);
  const log = pino({ level: 'silent' });
  const here = { id: randomUUID(), machineId: readMachineId() };

  /** With the key as it is now: a hub that has never run has none, and none is to be made for it. */
  async function open() {
    const secrets = await loadCookieSecrets({
      configured: config.Hub.cookie_secret,
      file: secretFile,
    });
    const identity = config.Hub.internal_ssl
      ? await createInternalAuthority({
          settings: createSettingStore(database),
          secrets,
          now: database.now,
          log,
        }).issue('command')
      : undefined;
    return createChannelCaller({
      identity: () => identity,
      path: `${config.basePath}hub/${channelPath}`,
      self: here,
      signature: createChannelSignature(secrets),
      log,
    });
  }
  let opened: ReturnType<typeof open> | undefined;
  const caller = () => (opened ??= open());

  return {
    here,
    async answers(instance) {
      const url = urlFrom(here, instance);
      const isKeyKnown = config.Hub.cookie_secret !== undefined || existsSync(secretFile);
      if (url === undefined || !isKeyKnown) return false;
      const party = await (await caller()).identify(url);
      return party.kind === 'instance' && party.id === instance.id;
    },
    async call(instance, operation, params, options) {
      const { id, name } = instance;
      const address = { id, name, url: urlFrom(here, instance) };
      const { call } = await caller();
      return call(address, operation, params, options).catch((error: unknown) => {
        throw withCause(error, address);
      });
    },
  };
}

/** Says why a hub does not answer, which among instances only their logs tell. */
function withCause(error: unknown, { name, url }: InstanceAddress): unknown {
  if (!(error instanceof HubError && error.cause instanceof Error)) return error;
  const reason = error.cause.message;
  return new HubError('unavailable', `The hub "${name}" does not answer at ${url}: ${reason}.`, {
    hint: 'Run this with the configuration file of that hub.',
  });
}
