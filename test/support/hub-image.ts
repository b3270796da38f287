import { cpSync, existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { programFile } from './program-file.ts';
import { projectDirectory } from './services.ts';

const dockerfile = join(projectDirectory, 'deploy', 'Dockerfile');

/** The instructions of each stage of the Dockerfile, each as its name and its words. */
function stages(): readonly (readonly (readonly [name: string, rest: string])[])[] {
  return readFileSync(dockerfile, 'utf8')
    .split(/^(?=FROM )/m)
    .map((stage) =>
      [...stage.matchAll(/^([A-Z]+) (.+)$/gm)].map(([, name = '', rest = '']) => [name, rest]),
    );
}

/** What stands behind the last instruction of a name in the Dockerfile's last stage; empty when there is none. */
export function imageInstruction(name: string): string {
  return (
    stages()
      .at(-1)
      ?.findLast(([each]) => each === name)?.[1] ?? ''
  );
}

/** Copies into a folder what the Dockerfile copies from the sources to build the program of. */
export function copyBuildContext(directory: string): void {
  for (const [name, rest] of stages().flat()) {
    if (name !== 'COPY' || rest.startsWith('--from')) continue;
    const words = rest.split(' ');
    const target = words.pop() ?? '';
    for (const source of words) {
      const from = join(projectDirectory, source);
      if (!existsSync(from)) throw new Error(`the Dockerfile copies ${source}, which is not there`);
      cpSync(from, join(directory, target, target === './' ? source : ''), {
        recursive: true,
        filter: (path) => !path.endsWith('.test.ts'),
      });
    }
  }
}

/** Copies the built program into a folder, as it is in /opt/hub of the image, without node_modules. */
export function copyHubInto(directory: string): void {
  cpSync(dirname(dirname(programFile('main'))), directory, { recursive: true });
}
