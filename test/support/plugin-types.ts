import { execFile } from 'node:child_process';
import { join } from 'node:path';
import type { PluginFolder } from './plugin-folder.ts';
import { projectDirectory } from './services.ts';

/**
 * Compiles files of a folder as strictly as the project, with the types of the project in the place of
 * those that its owner would install. Throws what the compiler says.
 */
export async function compileIn(folder: PluginFolder, files: readonly string[]): Promise<void> {
  const types = (file: string) => [join(projectDirectory, file)];
  const settings = {
    extends: join(projectDirectory, 'tsconfig.json'),
    compilerOptions: {
      typeRoots: types('node_modules/@types'),
      paths: {
        '@hub-gateway/hub/client': types('src/client/client.ts'),
        '@hub-gateway/hub/plugin': types('src/plugin/plugin.ts'),
        '@hub-gateway/hub/testing': types('test/contract/testing.ts'),
        zod: types('node_modules/zod/index.d.ts'),
      },
    },
    include: [],
    files,
  };
  await folder.write('package.json', '{"private": true, "type": "module"}');
  await folder.write('tsconfig.json', JSON.stringify(settings));
  const compiler = join(projectDirectory, 'node_modules/typescript/bin/tsc');
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  execFile(process.execPath, [compiler, '-p', folder.path('tsconfig.json')], (error, stdout) =>
    error === null ? resolve() : reject(new Error(stdout)),
  );
  await promise;
}
