import type { Logger } from 'pino';
import {
  type ReloadOutcome,
  type ReloadReport,
  reloadOperation,
} from '../cluster/instances/reload-operation.ts';
import type { ConfiguredRights } from '../identity/accounts/configured-rights.ts';
import { loadDirectory } from '../identity/accounts/load-directory.ts';
import type { RoleAdministration } from '../identity/accounts/role-administration.ts';
import type { SecondFactorRule } from '../identity/accounts/second-factor-rule.ts';
import type { ScopeCatalogue } from '../identity/rbac/scope-definitions.ts';
import type { SiteBranding } from '../platform/branding/branding.ts';
import { brandingSettings } from '../platform/config/branding-schema.ts';
import type { Config } from '../platform/config/config.ts';
import { languageSettingsOf } from '../platform/config/language-settings.ts';
import type { ConfigProblem } from '../platform/errors.ts';
import type { HubDatabase } from '../platform/store/database.ts';
import type { Languages } from '../platform/texts/languages.ts';
import type { PreparedPlugins } from '../plugin/host/prepare-plugins.ts';
import { removeShadowedServices } from '../workloads/services/service-administration.ts';
import type { ComposedBrowser } from './compose-browser.ts';
import type { ComposedGateways } from './compose-gateways.ts';
import { digestSettings } from './describe-instance.ts';
import type { Foundation } from './foundation.ts';
import type { Identity } from './identity.ts';
import type { Site } from './site.ts';

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
  'language',
  'languages_dir',
  'title',
  'accent_color',
  ...Object.keys(brandingSettings),
]);
/** What files of the branding are named by, and what stands beside them on pages. */
const ofTheBranding = new Set(
  ['title', 'accent_color', ...Object.keys(brandingSettings)].map((key) => `Hub.${key}`),
);
/** Read once at start by what a reload does not build again. */
const reservedAuthenticatorSettings = new Set([
  'auto_login',
  'refresh_pre_spawn',
  'refresh_pre_stop',
  'lockout_attempts',
  'lockout_delay',
  'lockout_max_delay',
  'recent_login_seconds',
]);

/** Takes over services, roles, groups and authenticators of a new, already checked configuration. */
export function createReload(
  { config, stores, database, instance, log }: Foundation,
  deps: {
    readonly login: Pick<Identity, 'reloadLogin'>;
    readonly services: Identity;
    readonly browser: Pick<ComposedBrowser, 'announcements'>;
    readonly site: Pick<Site, 'origins' | 'setBranding'>;
    readonly gateways: Pick<ComposedGateways, 'publishBranding'>;
    readonly languages: Pick<Languages, 'reload'>;
    readonly catalogue: ScopeCatalogue;
    /** Of the look at the start. */
    readonly brandingDigest: string;
    readonly roleAdministration: Pick<RoleAdministration, 'configure'>;
    readonly secondFactorRule: Pick<SecondFactorRule, 'configure'>;
    readonly configuredRights: Pick<ConfiguredRights, 'configure'>;
  },
): (reloaded: ReloadedConfig) => Promise<ReloadReport> {
  const { login, catalogue } = deps;
  const { registry, extraRoutes } = deps.services;
  const { announcements } = deps.browser;
  let current = config;
  let currentBrandingDigest = deps.brandingDigest;
  let reloading: Promise<unknown> = Promise.resolve();

  async function reload(reloaded: ReloadedConfig): Promise<ReloadReport> {
    const { config: next, plugins, branding, warnings } = reloaded;
    const { changed, needRestart } = compareSettings(current, next);
    // First, since it is what may still fail: then everything stays as it was.
    await login.reloadLogin(next, plugins);
    // Before the names get it.
    deps.configuredRights.configure(next);
    await removeShadowedServices(next.Hub.services, { store: stores.runtimeServiceStore, log });
    const given = await loadDirectory(next, { ...stores, catalogue, log });
    deps.roleAdministration.configure(next.Hub.load_roles);
    deps.secondFactorRule.configure(next.Authenticator);
    const services = await registry.applyConfig(next.Hub.services);
    extraRoutes.apply(next);
    announcements.update(next.Hub);
    await deps.languages.reload(languageSettingsOf(next));
    deps.site.setBranding(branding);
    deps.gateways.publishBranding();
    database.announceChange({ kind: 'rights_changed' });
    current = next;
    const filesChanged =
      branding.digest !== currentBrandingDigest && !changed.some((name) => ofTheBranding.has(name));
    currentBrandingDigest = branding.digest;
    await instance.setSettingsDigest(digestSettings(next, branding.digest));
    for (const { path, message } of warnings) log.warn({ setting: path }, message);
    log.info({ services }, 'new configuration applied');
    await database.audit.recordAlone({
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

function compareSettings(before: Config, after: Config) {
  const changed: string[] = [];
  const needRestart: string[] = [];
  for (const section of ['Hub', 'Authenticator', 'Spawner', 'Proxy'] as const) {
    const [old, now] = [before[section], after[section]] as Record<string, unknown>[];
    for (const key of Object.keys({ ...old, ...now })) {
      if (JSON.stringify(old?.[key]) === JSON.stringify(now?.[key])) continue;
      const isInForce =
        (section === 'Hub' && reloadedSettings.has(key)) ||
        (section === 'Proxy' && key === 'extra_routes') ||
        (section === 'Authenticator' && !reservedAuthenticatorSettings.has(key));
      (isInForce ? changed : needRestart).push(`${section}.${key}`);
    }
  }
  return { changed, needRestart };
}

/** Calls back when another instance has reloaded, and when an operator asks for it, who is told what came of it. */
export function onReload(
  listeners: ReloadListeners,
  deps: {
    readonly database: Pick<HubDatabase, 'onChange'>;
    readonly instances: Pick<Identity, 'instance' | 'directory' | 'channel'>;
    readonly log: Logger;
  },
): void {
  const { instance, directory, channel } = deps.instances;
  deps.database.onChange((subject) => {
    if (subject.kind !== 'reload_requested' || subject.instanceId === instance.id) return;
    deps.log.info({ by: directory.find(subject.instanceId)?.name }, 'reload requested');
    listeners.byInstance();
  });
  channel.handle(reloadOperation, () => listeners.byOperator());
}
