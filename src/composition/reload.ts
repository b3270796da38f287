import type { Logger } from 'pino';
import { loadDirectory } from '../accounts/load-directory.ts';
import type { Config } from '../config/config.ts';
import type { Announcements } from '../pages/announcements.ts';
import type { PreparedPlugins } from '../plugin-host/prepare-plugins.ts';
import type { ScopeCatalogue } from '../rbac/scope-definitions.ts';
import type { ServiceRegistry } from '../services/service-registry.ts';
import type { HubDatabase } from '../store/database.ts';
import type { ComposedLogin } from './compose-login.ts';
import type { Stores } from './stores.ts';

/** A configuration that has passed every check, with its plugins. */
export interface ReloadedConfig {
  readonly config: Config;
  readonly plugins: PreparedPlugins;
}

/** Settings of `Hub` that a reload changes; all others need a restart, and the log says so. */
const reloadedSettings = new Set([
  'services',
  'load_roles',
  'load_groups',
  'authenticator_class',
  'announcement',
  'announcement_login',
  'announcement_home',
  'announcement_spawn',
  'announcement_logout',
]);
/** Read once at start by what a reload does not build again. */
const keptAuthenticatorSettings = new Set([
  'auto_login',
  'refresh_pre_spawn',
  'refresh_pre_stop',
  'lockout_attempts',
  'lockout_delay',
  'lockout_max_delay',
]);

/** Creates the reload: services, roles, groups and authenticators of a new, already checked configuration. */
export function createReload(deps: {
  readonly current: Config;
  readonly login: Pick<ComposedLogin, 'reload'>;
  readonly registry: ServiceRegistry;
  readonly announcements: Pick<Announcements, 'update'>;
  readonly stores: Stores;
  readonly catalogue: ScopeCatalogue;
  readonly database: HubDatabase;
  readonly log: Logger;
}): (reloaded: ReloadedConfig) => Promise<void> {
  const { login, registry, stores, catalogue, database, log } = deps;
  let { current } = deps;
  let reloading: Promise<void> = Promise.resolve();

  async function reload({ config, plugins }: ReloadedConfig): Promise<void> {
    const needRestart = settingsThatNeedRestart(current, config);
    // First, since it is what may still fail: then everything stays as it was.
    await login.reload(config, plugins);
    await loadDirectory(config, { ...stores, catalogue, log });
    const services = await registry.applyConfig(config.Hub.services);
    deps.announcements.update(config.Hub);
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

  return (reloaded) => {
    const done = reloading.then(() => reload(reloaded));
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
      if (section === 'Authenticator' && !keptAuthenticatorSettings.has(key)) continue;
      if (JSON.stringify(old?.[key]) !== JSON.stringify(now?.[key]))
        changed.push(`${section}.${key}`);
    }
  }
  return changed;
}
