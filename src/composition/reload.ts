import { digestSettings } from '../cluster/instances/describe-instance.ts';
import {
  type ReloadOutcome,
  type ReloadReport,
  reloadOperation,
} from '../cluster/instances/reload-operation.ts';
import { loadDirectory } from '../identity/accounts/load-directory.ts';
import type { SiteBranding } from '../platform/branding/branding.ts';
import type { Config } from '../platform/config/config.ts';
import { languageSettingsOf } from '../platform/config/language-settings.ts';
import { compareSettings, ofTheBranding } from '../platform/config/reloaded-settings.ts';
import type { ConfigProblem } from '../platform/errors.ts';
import type { PreparedPlugins } from '../plugin/host/prepare-plugins.ts';
import { removeShadowedServices } from '../workloads/services/service-administration.ts';
import type { Identity } from './identity.ts';
import type { Whole } from './operations.ts';

/** A configuration that has passed every check, with its plugins. */
export interface ReloadedConfig {
  readonly config: Config;
  readonly plugins: PreparedPlugins;
  readonly branding: SiteBranding;
  /** What works but is probably a mistake. */
  readonly warnings: readonly ConfigProblem[];
}

export interface ReloadListeners {
  byInstance(): void;
  byOperator(): Promise<ReloadOutcome>;
}

/** Takes over services, roles, groups and authenticators of a new, already checked configuration. */
export function createReload(hub: Whole): (reloaded: ReloadedConfig) => Promise<ReloadReport> {
  const { config, runtimeServiceStore, instance, log } = hub;
  let current = config;
  let currentBrandingDigest = hub.brandingDigest;
  let reloading: Promise<unknown> = Promise.resolve();

  async function reload(reloaded: ReloadedConfig): Promise<ReloadReport> {
    const { config: next, plugins, branding, warnings } = reloaded;
    const { changed, needRestart } = compareSettings(current, next);
    // First, since it is what may still fail: then everything stays as it was.
    await hub.reloadLogin(next, plugins);
    // Before the names get it.
    hub.configuredRights.configure(next);
    await removeShadowedServices(next.Hub.services, { store: runtimeServiceStore, log });
    const given = await loadDirectory(next, hub);
    hub.roleAdministration.configure(next.Hub.load_roles);
    hub.secondFactorRule.configure(next.Authenticator);
    const services = await hub.registry.applyConfig(next.Hub.services);
    hub.extraRoutes.apply(next);
    hub.acme?.configure(next);
    hub.announcements.update(next.Hub);
    await hub.languages.reload(languageSettingsOf(next));
    await hub.certificateFiles?.refresh();
    hub.setBranding(branding);
    hub.gateways.publishBranding();
    hub.database.announceChange({ kind: 'rights_changed' });
    current = next;
    const filesChanged =
      branding.digest !== currentBrandingDigest && !changed.some((name) => ofTheBranding.has(name));
    currentBrandingDigest = branding.digest;
    await instance.setSettingsDigest(digestSettings(next, branding.digest));
    for (const { path, message } of warnings) log.warn({ setting: path }, message);
    log.info({ services }, 'new configuration applied');
    await hub.audit.recordAlone({
      action: 'hub.reload',
      target: { kind: 'hub', name: instance.name },
      detail: { needs_restart: needRestart },
    });
    if (needRestart.length > 0) {
      log.warn({ settings: needRestart }, 'changed settings need a restart of the hub');
    }
    return {
      outcome: 'reloaded',
      changed,
      needRestart,
      filesChanged,
      given: { roles: [...given.roles], members: [...given.members] },
      services: {
        added: [...services.added],
        removed: [...services.removed],
        restarted: [...services.restarted],
        updated: [...services.updated],
      },
      warnings: warnings.map(({ path, message }) => `${path}: ${message}`),
    };
  }

  return (reloaded) => {
    const done = reloading.then(() => reload(reloaded));
    reloading = done.catch(() => undefined);
    return done;
  };
}

/** Calls back when another instance has reloaded, and when an operator asks for it, who is told what came of it. */
export function onReload(
  listeners: ReloadListeners,
  { database, instance, directory, channel, log }: Identity,
): void {
  database.onChange(
    ({ instanceId }) => {
      if (instanceId === instance.id) return;
      log.info({ by: directory.find(instanceId)?.name }, 'reload requested');
      listeners.byInstance();
    },
    ['reload_requested'],
  );
  channel.handle(reloadOperation, () => listeners.byOperator());
}
