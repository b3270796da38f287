import type { Command } from 'commander';
import { createConfigJsonSchema } from '../../platform/config/json-schema.ts';
import { StartupError } from '../../platform/errors.ts';
import { builtInPluginsDirectory, createPluginLoader } from '../../plugin/host/plugin-loader.ts';
import { createConfiguredPluginLoader } from '../../plugin/host/prepare-plugins.ts';
import type { CliIo } from './cli-io.ts';
import { loadFor, withConfig } from './with-config.ts';

/** Adds `hub schema`. */
export function addSchemaCommand(program: Command, io: CliIo): void {
  withConfig(program.command('schema'))
    .description('print the JSON Schema of the configuration file, for editors')
    .action(async (flags: { readonly config?: string }, command: Command) => {
      const loader =
        flags.config === undefined
          ? createPluginLoader([builtInPluginsDirectory])
          : createConfiguredPluginLoader((await loadFor(command, io)).config);
      const { plugins, broken } = await loader.list();
      const [first] = broken;
      if (first !== undefined) throw new StartupError(first.message);
      const schema = createConfigJsonSchema(plugins.map(({ plugin }) => plugin));
      io.stdout.write(`${JSON.stringify(schema, undefined, 2)}\n`);
    });
}
