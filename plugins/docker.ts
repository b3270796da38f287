import { dockerPlugin } from '../src/spawning/docker/docker-plugin.ts';

/** The built-in spawner of containers: `Spawner.class` is `docker`. */
export default dockerPlugin;
