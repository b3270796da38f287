import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { type PluginFolderRun, problemsIn } from './plugin-folder.ts';
import { projectDirectory } from './services.ts';

/**
 * Runs `hub check` in one folder after another, for the tests of a file in one process that no test shares with
 * the runner: to load the program takes most of the time of a check. It loads each plugin file once.
 */
export function useCheckProcess(): (directory: string) => Promise<PluginFolderRun> {
  let child: ChildProcess | undefined;
  afterAll(() => child?.kill());
  return async (directory) => {
    child ??= fork(join(projectDirectory, 'test/support/answer-checks.ts'), { execArgv: [] });
    const ended = new AbortController();
    const onExit = () => ended.abort(new Error('the process of the checks ended'));
    child.once('exit', onExit);
    const answer = once(child, 'message', { signal: ended.signal });
    child.send(directory);
    const [run] = (await answer) as [Omit<PluginFolderRun, 'problems'>];
    child.off('exit', onExit);
    return { ...run, problems: problemsIn(run.stderr) };
  };
}
