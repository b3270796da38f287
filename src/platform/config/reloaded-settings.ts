import { brandingSettings } from './branding-schema.ts';
import type { Config } from './config.ts';

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

/** What files of the branding are named by, and what stands beside them on pages. */
export const ofTheBranding = new Set(
  ['title', 'accent_color', ...Object.keys(brandingSettings)].map((key) => `Hub.${key}`),
);

/** Which settings differ, and which of those are in force only after a restart. */
export function compareSettings(before: Config, after: Config) {
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
