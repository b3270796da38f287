import { cpSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectDirectory } from './services.ts';

const dockerfile = join(projectDirectory, 'deploy', 'Dockerfile');

/** The instructions of the Dockerfile's last stage, each as its name and its words. */
function lastStage(): readonly (readonly [name: string, rest: string])[] {
  const text = readFileSync(dockerfile, 'utf8');
  const stage = text.slice(text.lastIndexOf('\nFROM ') + 1);
  return [...stage.matchAll(/^([A-Z]+) (.+)$/gm)].map(([, name = '', rest = '']) => [name, rest]);
}

/** What stands behind the last instruction of a name in the Dockerfile's last stage; empty when there is none. */
export function imageInstruction(name: string): string {
  return lastStage().findLast(([each]) => each === name)?.[1] ?? '';
}

/** Copies into a folder what the Dockerfile copies from the sources into /opt/hub, without node_modules. */
export function copyHubInto(directory: string): void {
  for (const [name, rest] of lastStage()) {
    if (name !== 'COPY' || rest.startsWith('--from')) continue;
    const words = rest.split(' ');
    const target = words.pop() ?? '';
    for (const source of words) {
      const from = join(projectDirectory, source);
      if (!existsSync(from)) throw new Error(`the Dockerfile copies ${source}, which is not there`);
      cpSync(from, join(directory, target, words.length > 1 ? source : ''), {
        recursive: true,
        filter: (path) => !path.endsWith('.test.ts'),
      });
    }
  }
}
