import { writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { createConfigJsonSchema } from '../../platform/config/json-schema.ts';
import { ConfigError, HubError } from '../../platform/errors.ts';
import { hubCommand, programFolder } from '../../platform/files/program-folder.ts';
import { reasonOf } from '../../platform/files/read-file.ts';
import { builtInPluginsDirectory, createPluginLoader } from '../../plugin/host/plugin-loader.ts';
import { convertConfig, type KnownSettings } from '../../workloads/jupyterhub/config-conversion.ts';
import type { ImportNote } from '../../workloads/jupyterhub/plan-servers.ts';
import { readPythonConfig } from '../../workloads/jupyterhub/python-config.ts';
import { loadCheckedConfig } from './checked-config.ts';
import type { CliIo } from './cli-io.ts';

export interface Notes {
  readonly changed: readonly ImportNote[];
  readonly left: readonly ImportNote[];
}

/** Writes the configuration of a JupyterHub as one of the hub; prints it instead of a dry run. */
export async function importConfig(
  flags: {
    readonly from: string;
    readonly python: string;
    readonly dryRun: boolean;
    readonly json?: boolean;
    readonly target: string;
  },
  io: CliIo,
): Promise<void> {
  const { from, python, dryRun, target } = flags;
  const old = await readPythonConfig(from, { python, env: io.env });
  const { config, changed, left } = convertConfig(old, await knownSettings());
  const schema = relative(dirname(target), join(programFolder, 'hub.schema.json'));
  const text = `${JSON.stringify({ $schema: schema.startsWith('.') ? schema : `./${schema}`, ...config }, null, 2)}\n`;
  if (!dryRun) write(target, text);
  const problems = dryRun ? [] : await problemsOf(target, io);
  if (flags.json === true) {
    io.stdout.write(
      `${JSON.stringify({ dry_run: dryRun, config, changed, left, problems }, null, 2)}\n`,
    );
    return;
  }
  const said = `${from} was run by ${python}.`;
  const notes = describeNotes({ changed, left });
  if (dryRun)
    io.stdout.write(`${text}\n${said} Nothing was written: this was a dry run.\n${notes}`);
  else {
    const wrong = problems.map((problem) => `  ${problem}\n`).join('');
    io.stdout.write(
      `${said} ${target} was written: it holds the secrets that were in there.\n${notes}${wrong === '' ? '' : `\nTo be corrected in it:\n${wrong}`}\nNext: ${hubCommand('check')}\n`,
    );
  }
}

async function knownSettings(): Promise<KnownSettings> {
  const { plugins } = await createPluginLoader([builtInPluginsDirectory]).list();
  const { properties = {} } = createConfigJsonSchema(plugins.map(({ plugin }) => plugin));
  return Object.fromEntries(
    Object.entries(properties).map(([section, schema]) => [
      section,
      new Set(Object.keys((typeof schema === 'object' && schema.properties) || {})),
    ]),
  );
}

/** Readable by its owner alone. Throws `conflict` for a file that is there. */
function write(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    const isThere = (error as NodeJS.ErrnoException).code === 'EEXIST';
    const message = isThere
      ? `${file} is there already.`
      : `${file} cannot be written: ${reasonOf(error)}`;
    throw new HubError(isThere ? 'conflict' : 'bad_request', message, {
      hint: 'Name another file with --config, or try with --dry-run.',
    });
  }
}

async function problemsOf(file: string, { env, directory }: CliIo): Promise<readonly string[]> {
  try {
    await loadCheckedConfig({ file, env, directory });
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
  }
}

/** What is not as it was, in lines. */
export function describeNotes({ changed, left }: Notes): string {
  const listed = (title: string, list: readonly ImportNote[]) => {
    const lines = list.map(
      ({ what, why, todo }) => `  ${what}: ${why}${todo === undefined ? '' : `; ${todo}`}\n`,
    );
    return lines.length === 0 ? '' : `\n${title}:\n${lines.join('')}`;
  };
  return `${listed('Changed', changed)}${listed('Left behind', left)}`;
}
