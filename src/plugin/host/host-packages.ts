import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';

/** Packages that plugins import without installing them: the hub's own zod, and the hub itself. */
const hostPackage = /^(?:zod|@hub-gateway\/hub)(?:\/|$)/;

/** URLs of plugin files, and of plugin folders with a slash at the end. */
const pluginModules = new Set<string>();
let isRegistered = false;

/**
 * Lets a plugin file, or every file in a folder of plugins, import what the hub lends. These packages
 * are always the hub's own, whatever else is installed, so that a plugin does the same in every
 * folder. Everything else in the process resolves as before, packages of a plugin's own included.
 *
 * Node.js has one resolution for the whole process (`module.registerHooks`), hence the one set.
 */
export function provideHostPackages(to: {
  readonly path: string;
  readonly isFolder: boolean;
}): void {
  pluginModules.add(pathToFileURL(to.path).href + (to.isFolder ? '/' : ''));
  if (isRegistered) return;
  isRegistered = true;
  registerHooks({
    resolve: (specifier, context, nextResolve) =>
      hostPackage.test(specifier) && isPluginModule(context.parentURL)
        ? nextResolve(specifier, { ...context, parentURL: import.meta.url })
        : nextResolve(specifier, context),
  });
}

function isPluginModule(url: string | undefined): boolean {
  if (url === undefined) return false;
  return pluginModules
    .values()
    .some(
      (pluginModule) =>
        url === pluginModule ||
        (pluginModule.endsWith('/') &&
          url.startsWith(pluginModule) &&
          !url.includes('/node_modules/', pluginModule.length - 1)),
    );
}
