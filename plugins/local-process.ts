import { localProcessPlugin } from '../src/spawning/local-process/local-process-plugin.ts';

/** The built-in spawner under the name that `Spawner.class` has by default. */
export default localProcessPlugin;
