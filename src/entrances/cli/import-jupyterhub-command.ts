import { resolve } from 'node:path';
import type { Command } from 'commander';
import { pino } from 'pino';
import { placeOf } from '../../cluster/instances/instance-overview.ts';
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
import { readMachineId } from '../../spawning/processes/machine-id.ts';
import { type ImportPlan, planImport } from '../../workloads/jupyterhub/import-plan.ts';
import type { ImportCounts } from '../../workloads/jupyterhub/import-rows-store.ts';
import { importPlan } from '../../workloads/jupyterhub/import-store.ts';
import { readOldHub } from '../../workloads/jupyterhub/old-hub.ts';
import { readNativePasswords } from '../../workloads/jupyterhub/old-passwords.ts';
import { readPasswordFile } from '../../workloads/jupyterhub/python-config.ts';
import type { CliIo } from './cli-io.ts';
import { describeNotes, importConfig, type Notes } from './import-config.ts';
import { loadFor, withConfig } from './with-config.ts';

interface ImportFlags {
  readonly from?: string;
  readonly python: string;
  readonly database?: string;
  readonly passwords?: string;
  readonly dryRun?: boolean;
  readonly update?: boolean;
  readonly json?: boolean;
}

const help = () => `
--from runs the file, by the Python of the JupyterHub, and writes a new hub.config.json. --database reads
the database and never writes it; the hub must not run meanwhile, the JupyterHub may.

Examples:
  ${hubCommand('import jupyterhub --from /etc/jupyterhub/jupyterhub_config.py')}
  ${hubCommand('import jupyterhub --database sqlite:////srv/jupyterhub/jupyterhub.sqlite --dry-run')}
  ${hubCommand('import jupyterhub --database postgresql://jupyterhub@db/jupyterhub --update')}`;

/** Adds `hub import jupyterhub`. */
export function addImportJupyterHubCommand(program: Command, io: CliIo): void {
  const command = program.command('import').description('take over what another program has');
  withConfig(command.command('jupyterhub'))
    .description(
      'take over the configuration of a JupyterHub, and its users, groups, roles, tokens, named servers and shares',
    )
    .option(
      '--from <file>',
      'run this jupyterhub_config.py and write what it says as a configuration',
    )
    .option(
      '--python <program>',
      'Python of the JupyterHub, for --from and passwords.dbm',
      'python3',
    )
    .option('--database <url>', 'its database, as in c.JupyterHub.db_url')
    .option(
      '--passwords <where>',
      'native: those of NativeAuthenticator in the database; or the passwords.dbm of FirstUseAuthenticator',
    )
    .option('--dry-run', 'say what would be done, and do nothing')
    .option(
      '--update',
      'also change what was taken over before to what it is there now, and remove what it has no more',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', help)
    .action(async (flags: ImportFlags, self: Command) => {
      const directory = resolve(io.directory ?? '.');
      const dryRun = flags.dryRun === true;
      if (flags.from !== undefined) {
        const target = resolve(
          directory,
          self.opts<{ config?: string }>().config ?? 'hub.config.json',
        );
        await importConfig({ ...flags, from: resolve(directory, flags.from), dryRun, target }, io);
      }
      if (flags.database === undefined) {
        if (flags.from !== undefined) return;
        throw new HubError('bad_request', 'Nothing is said to be taken over.', {
          hint: 'Name a configuration with --from, or a database with --database.',
        });
      }
      if (flags.from !== undefined && dryRun) {
        throw new HubError('bad_request', 'A dry run is of one of --from and --database.');
      }
      const { config } = await loadFor(self, io);
      const plan = await planFor(
        config,
        { ...flags, database: flags.database },
        { directory, env: io.env },
      );
      const counts = await importInto(config, plan, { dryRun, update: flags.update === true });
      const { changed, left } = plan;
      if (flags.json === true) {
        const report = { dry_run: dryRun, taken: counts, changed, left };
        io.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
        return;
      }
      io.stdout.write(describe(counts, plan));
      if (dryRun) io.stdout.write('\nNothing was written: this was a dry run.\n');
    });
}

async function planFor(
  config: Config,
  {
    database: url,
    passwords,
    python,
  }: Pick<ImportFlags, 'passwords' | 'python'> & { readonly database: string },
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
    },
  };
  return planImport(await readOldHub(old, Date.now()), rules, oldPasswords);
}

async function importInto(
  { Hub, directory }: Config,
  plan: ImportPlan,
  options: { readonly dryRun: boolean; readonly update: boolean },
): Promise<ImportCounts> {
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
  servers: 'named servers',
  shares: 'shares',
  passwords: 'passwords',
  secondFactors: 'second factors',
};

function describe(counts: ImportCounts, notes: Notes): string {
  const lines = Object.entries(counts).map(([kind, { found, added, changed, removed }]) => {
    const more = [
      `${added} new`,
      ...(changed > 0 ? [`${changed} changed`] : []),
      ...(removed > 0 ? [`${removed} removed`] : []),
    ];
    return `  ${String(found).padStart(7)} ${titles[kind as keyof ImportCounts]} (${more.join(', ')})\n`;
  });
  return `Taken over:\n${lines.join('')}${describeNotes(notes)}`;
}
