import { roleWarnings } from '../../identity/rbac/validate-roles.ts';
import type { SiteBranding } from '../../platform/branding/branding.ts';
import { readBranding } from '../../platform/branding/read-branding.ts';
import type { Config } from '../../platform/config/config.ts';
import { type ConfigPlaces, inOrder, loadConfig } from '../../platform/config/load.ts';
import type { ConfigProblem } from '../../platform/errors.ts';
import { safeRedirectTarget } from '../../platform/http/redirect-target.ts';
import { type PreparedPlugins, preparePlugins } from '../../plugin/host/prepare-plugins.ts';
import { checkServices } from '../../workloads/services/service-facts.ts';
import { iconWarnings } from '../../workloads/services/service-info.ts';
import { checkAccountRisks } from './account-check.ts';
import {
  certificateWarnings,
  checkAccounts,
  checkCertificateFiles,
  checkCookieSecretFile,
  checkScopes,
} from './config-checks.ts';
import { checkLanguages } from './language-check.ts';
import { checkPrograms } from './program-check.ts';
import { checkReachability } from './reachability-check.ts';

/** A configuration that every part of the hub has checked. */
export interface CheckedConfig {
  readonly config: Config;
  /** Plugins it names, loaded and their options checked, none of them created. */
  readonly plugins: PreparedPlugins;
  readonly branding: SiteBranding;
  readonly warnings: readonly ConfigProblem[];
  /** Where settings stand in the file. */
  readonly places: ConfigPlaces;
}

export interface CheckedConfigOptions {
  readonly file?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly directory?: string | undefined;
}

/** Loads a configuration with every check there is; throws a ConfigError with all problems. */
export async function loadCheckedConfig(options: CheckedConfigOptions): Promise<CheckedConfig> {
  const { file, env, directory } = options;
  const warnings: ConfigProblem[] = [];
  let plugins: PreparedPlugins | undefined;
  let places: ConfigPlaces = { positionOf: () => undefined };
  const config = await loadConfig({
    file,
    env,
    ...(directory !== undefined && { directory }),
    onWarning: (warning) => warnings.push(warning),
    onRead: (document) => {
      places = document;
    },
    checks: [
      checkServices,
      checkScopes,
      checkAccounts,
      checkCookieSecretFile,
      checkCertificateFiles,
      async (candidate) => {
        plugins = await preparePlugins(candidate, { env });
        return plugins.problems;
      },
    ],
  });
  if (plugins === undefined) throw new TypeError('the plugins were not prepared');
  const branding = await readBranding(config);
  warnings.push(
    ...plugins.warnings,
    ...roleWarnings(config.Hub.load_roles),
    ...iconWarnings(config.Hub.services, (address) =>
      safeRedirectTarget(address, config.publicUrl),
    ),
    ...branding.warnings,
    ...(await certificateWarnings(config)),
    ...(await checkPrograms(config, env)),
    ...(await checkReachability(config, env)),
    ...(await checkAccountRisks(config)),
    ...(await checkLanguages(config, branding.own.branding)),
  );
  return { config, plugins, branding: branding.own, warnings: inOrder(warnings, places), places };
}
