/** The built-in spawner under the name that `Spawner.class` has by default. */
export { localProcessPlugin as default } from '../src/spawning/local-process/local-process-plugin.ts';
