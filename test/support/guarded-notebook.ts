import { pathOf } from './requires.ts';

/** Settings of `Spawner` for Jupyter Notebook behind the gateway, as the how-to "Run other apps" shows them. */
export function guardedNotebook() {
  return {
    cmd: [
      pathOf('jupyter-notebook'),
      '--no-browser',
      '--allow-root',
      '--sock={socket}',
      '--NotebookApp.base_url={prefix}',
      '--NotebookApp.token=',
      '--NotebookApp.allow_remote_access=1',
    ],
    ready_path: '/api',
  };
}
