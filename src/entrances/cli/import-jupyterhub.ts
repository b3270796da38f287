import { resolve } from 'node:path';
import { pino } from 'pino';
import { placeOf } from '../../cluster/instances/instance-directory.ts';
import { createInstanceStore } from '../../cluster/instances/instance-store.ts';
import { createUserNameRules } from '../../identity/authentication/user-name-rules.ts';
import { createScopeCatalogue } from '../../identity/rbac/scope-definitions.ts';
import type { Config } from '../../platform/config/config.ts';
import { loadCookieSecrets } from '../../platform/config/cookie-secret.ts';
import { Secret } from '../../platform/config/secret.ts';
import { randomToken } from '../../platform/crypto/random.ts';
import { createSealer } from '../../platform/crypto/sealer.ts';
import { HubError } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { lockDatabase } from '../../platform/store/database-lock.ts';
import { openOldDatabase } from '../../platform/store/old-database.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import { probeDatabase } from '../../platform/store/probe-database.ts';
import { optionsSchema } from '../../spawning/kubernetes/kubernetes-options.ts';
import { readMachineId } from '../../spawning/processes/machine-id.ts';
import { type ImportPlan, planImport } from '../../workloads/jupyterhub/import-plan.ts';
import type { ImportCounts, ImportResult } from '../../workloads/jupyterhub/import-rows-store.ts';
import { importPlan } from '../../workloads/jupyterhub/import-store.ts';
import { readOldHub } from '../../workloads/jupyterhub/old-hub.ts';
import { readNativePasswords } from '../../workloads/jupyterhub/old-passwords.ts';
import { readPasswordFile } from '../../workloads/jupyterhub/python-config.ts';
import type { CliIo } from './cli-io.ts';
import { describeNotes, type Notes } from './import-config.ts';

/** What is to be taken over of a database of JupyterHub. Throws HubError, StartupError. */
export async function planFor(
  config: Config,
  {
    database: url,
    passwords,
    python,
  }: { readonly passwords?: string; readonly python: string; readonly database: string },
  { directory, env }: { readonly directory: string; readonly env: CliIo['env'] },
): Promise<ImportPlan> {
  const { Hub, Authenticator } = config;
  await using old = await openOldDatabase(url, { directory, setting: '--database' });
  const oldPasswords =
    passwords === undefined
      ? []
      : passwords === 'native'
        ? await readNativePasswords(old)
        : await readPasswordFile(resolve(directory, passwords), { python, env });
  const rules = {
    userNames: createUserNameRules(Authenticator),
    catalogue: createScopeCatalogue(Hub.custom_scopes),
    configured: {
      groups: Hub.load_groups,
      roles: Hub.load_roles,
      serviceNames: Hub.services.map(({ name }) => name),
      claims: claimNamesOf(config),
    },
  };
  return planImport(await readOldHub(old, Date.now()), rules, oldPasswords);
}

function claimNamesOf({ pluginSections }: Config): readonly string[] {
  const { data } = optionsSchema.safeParse(pluginSections['KubernetesSpawner'] ?? {});
  return data?.claims.map(({ name }) => name) ?? [];
}

/** Takes it over in one transaction, or counts what would be. */
export async function importInto(
  { Hub, directory }: Config,
  plan: ImportPlan,
  options: { readonly dryRun: boolean; readonly update: boolean },
): Promise<ImportResult> {
  const { dryRun } = options;
  const explain = (holder: string, file: string) =>
    `A hub (${holder}) uses ${file}: stop it first.`;
  using _lock = dryRun ? undefined : await lockDatabase(Hub.database_url, { directory, explain });
  const probe = dryRun ? await probeDatabase(Hub.database_url, directory) : undefined;
  // To open a database that is not there makes one.
  const isNew = dryRun && probe?.schemaVersion === undefined;
  if (!isNew && probe !== undefined && probe.schemaVersion !== probe.newestSchemaVersion) {
    throw new HubError('conflict', 'The database of the hub is of an older version.', {
      hint: `Bring it up to date first: ${hubCommand('start')}`,
    });
  }
  await using database = await openDatabase(isNew ? 'sqlite::memory:' : Hub.database_url, {
    directory: resolve(directory),
    log: pino({ level: 'silent' }),
  });
  if (!dryRun) await requireStopped(database);
  const hasFactors = !dryRun && plan.secondFactors.length > 0;
  const secrets = hasFactors
    ? await loadCookieSecrets({
        configured: Hub.cookie_secret,
        file: resolve(directory, Hub.cookie_secret_file),
      })
    : [new Secret(randomToken())];
  const sealer = createSealer(secrets, 'second-factor');
  return await importPlan(database, plan, { ...options, sealer });
}

/** Throws `conflict` while a hub runs on the database: it knows rights by heart that would change under it. */
async function requireStopped(database: HubDatabase): Promise<void> {
  const here = { machineId: readMachineId() };
  const instances = await createInstanceStore(database).list();
  const running = instances.find((instance) => placeOf(instance, here).isUp);
  if (running === undefined) return;
  throw new HubError('conflict', `A hub (${running.name}) uses the database: stop it first.`, {
    hint: hubCommand('stop'),
  });
}

const titles: Readonly<Record<keyof ImportCounts, string>> = {
  users: 'users',
  groups: 'groups',
  members: 'members of groups',
  roles: 'roles',
  assignments: 'roles given',
  tokens: 'API tokens',
  services: 'services that were added at run time',
  servers: 'named servers',
  volumes: 'volumes',
  shares: 'shares',
  passwords: 'passwords',
  secondFactors: 'second factors',
};

/** What was taken over, changed and left behind, for people. */
export function describe(
  { counts, given }: ImportResult,
  notes: Notes,
  { dryRun }: { readonly dryRun: boolean },
): string {
  const lines = Object.entries(counts).map(([kind, { found, added, changed, removed }]) => {
    const more = [
      `${added} new`,
      ...(changed > 0 ? [`${changed} changed`] : []),
      ...(removed > 0 ? [`${removed} removed`] : []),
    ];
    return `  ${String(found).padStart(7)} ${titles[kind as keyof ImportCounts]} (${more.join(', ')})\n`;
  });
  const rights = given.map((line) => `  ${line}\n`).join('');
  return `${dryRun ? 'Would take over' : 'Taken over'}:\n${lines.join('')}${rights && `\nRights that ${dryRun ? 'would be' : 'were'} given:\n${rights}`}${describeNotes(notes)}`;
}
