import { budgetConnections } from '../../../platform/http/connection-budget.ts';
import { examineSpawner, tryProvider } from '../../../plugin/host/create-plugins.ts';
import { type Finding, failed, ok, skipped, warning } from '../../../plugin/host/finding.ts';
import type { PreparedPlugins } from '../../../plugin/host/prepare-plugins.ts';
import { openFilesLimit } from '../../../spawning/processes/open-files.ts';
import type { CheckedConfig } from '../checked-config.ts';
import { checkSubdomainSetup } from '../subdomain-check.ts';
import {
  checkExternalServices,
  checkForwardedHost,
  checkListeners,
  checkPublicUrl,
} from './check-addresses.ts';
import { clockUnknown, readClocks } from './check-clock.ts';
import { checkManagedServices } from './check-services.ts';
import {
  checkBackups,
  checkDatabase,
  checkDatabaseFile,
  checkFolders,
  checkStore,
} from './check-storage.ts';

const providerTimeoutMs = 10_000;
const engineTimeoutMs = 30_000;

/**
 * Looks at everything around a hub that a configuration alone does not tell. Changes nothing, and takes
 * a few seconds at most where something does not answer. `hubPid` is the process that runs with this
 * configuration, if one does.
 */
export async function examine(
  { config, plugins, warnings }: CheckedConfig,
  hubPid: number | undefined,
): Promise<readonly Finding[]> {
  using clocks = readClocks();
  const found = await Promise.all([
    warnings.map(({ path, message }) =>
      warning('configuration', `${path}: ${message}`, `change ${path} in the configuration file`),
    ),
    checkDatabase(config),
    checkStore(config),
    checkFolders(config),
    checkDatabaseFile(config),
    checkBackups(config),
    checkOpenFiles(config.Proxy.max_connections),
    checkListeners(config, hubPid),
    checkPublicUrl(config, hubPid),
    checkForwardedHost(config, hubPid),
    checkSubdomains(config),
    checkProviders(plugins),
    checkSpawners(plugins),
    checkExternalServices(config),
    checkManagedServices(config),
  ]);
  const findings = [...found.flat(), ...clocks.findings()];
  return findings.some(({ check }) => check === 'clock') ? findings : [...findings, clockUnknown()];
}

async function checkSubdomains(config: CheckedConfig['config']): Promise<readonly Finding[]> {
  if (config.subdomainHost === undefined) return [];
  const problems = await checkSubdomainSetup(config);
  if (problems.length === 0) return [ok('subdomains', `of ${config.subdomainHost.host}`)];
  return problems.map(({ path, message }) =>
    failed(
      'subdomains',
      `${path}: ${message}`,
      `correct ${path}, or the DNS, proxy and certificate of these names`,
    ),
  );
}

async function checkProviders({ authenticators }: PreparedPlugins): Promise<readonly Finding[]> {
  return await Promise.all(
    authenticators.map(async (prepared) => {
      const check = `login with ${prepared.entry.name}`;
      const answer = await tryProvider(prepared, providerTimeoutMs);
      if (answer === 'unasked') return skipped(check, 'has no provider to ask');
      if (answer === undefined) return ok(check, 'the provider answers');
      const fix = `start it, correct ${prepared.plugin.section}, or mend its certificate or the network`;
      return failed(check, answer, fix);
    }),
  );
}

async function checkSpawners({ spawners }: PreparedPlugins): Promise<readonly Finding[]> {
  const found = await Promise.all(
    spawners.map(async (prepared) => {
      const spawner = `spawner ${prepared.name}`;
      try {
        const findings = await examineSpawner(prepared, engineTimeoutMs);
        if (findings === undefined) return [skipped(spawner, 'has no engine to ask')];
        return findings.map(({ check, ...rest }) => ({ check: `${spawner}, ${check}`, ...rest }));
      } catch (error) {
        const message = error instanceof Error ? error.message : String(error);
        return [failed(spawner, message, `correct ${prepared.plugin.section}`)];
      }
    }),
  );
  return found.flat();
}

function checkOpenFiles(configured: number | undefined): Finding {
  const check = 'open files';
  const openFiles = openFilesLimit();
  const { maxConnections, warning: shortage } = budgetConnections({ configured, openFiles });
  if (shortage !== undefined) return warning(check, shortage.problem, shortage.fix);
  const connections = `${maxConnections === 0 ? 'any number of' : maxConnections} client connections`;
  return ok(
    check,
    `${openFiles === undefined ? 'no limit' : `up to ${openFiles}`}, for ${connections}`,
  );
}
