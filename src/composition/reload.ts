import type { Logger } from 'pino';
import type { Config } from '../config/config.ts';
import type { ScopeCatalogue } from '../rbac/scope-definitions.ts';
import type { ServiceRegistry } from '../services/service-registry.ts';
import type { HubDatabase } from '../store/database.ts';
import { loadDirectory } from './load-directory.ts';
import type { Stores } from './stores.ts';

/** Settings of `Hub` that a reload changes; all others need a restart, and the log says so. */
const reloadedSettings = new Set(['services', 'load_roles', 'load_groups']);

/** Creates the reload: services, roles and groups of a new, already checked configuration. */
export function createReload(parts: {
  readonly current: Config;
  readonly registry: ServiceRegistry;
  readonly stores: Stores;
  readonly catalogue: ScopeCatalogue;
  readonly database: HubDatabase;
  readonly log: Logger;
}): (config: Config) => Promise<void> {
  const { registry, stores, catalogue, database, log } = parts;
  let { current } = parts;
  let reloading: Promise<void> = Promise.resolve();

  async function reload(config: Config): Promise<void> {
    const needRestart = settingsThatNeedRestart(current, config);
    await loadDirectory(config, stores, catalogue, log);
    const services = await registry.applyConfig(config.Hub.services);
    database.announceChange();
    current = config;
    log.info({ services }, 'the new configuration is in force');
    if (needRestart.length > 0) {
      log.warn(
        { settings: needRestart },
        'these settings changed too and need a restart of the hub',
      );
    }
  }

  return (config) => {
    const done = reloading.then(() => reload(config));
    reloading = done.catch(() => undefined);
    return done;
  };
}

function settingsThatNeedRestart(before: Config, after: Config): string[] {
  const changed: string[] = [];
  for (const section of ['Hub', 'Authenticator', 'Spawner', 'Proxy'] as const) {
    const [old, now] = [before[section], after[section]] as Record<string, unknown>[];
    for (const key of Object.keys({ ...old, ...now })) {
      if (section === 'Hub' && reloadedSettings.has(key)) continue;
      if (JSON.stringify(old?.[key]) !== JSON.stringify(now?.[key]))
        changed.push(`${section}.${key}`);
    }
  }
  if (JSON.stringify(before.pluginSections) !== JSON.stringify(after.pluginSections)) {
    changed.push('options of plugins');
  }
  return changed;
}
