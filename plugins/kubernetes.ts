import { kubernetesPlugin } from '../src/spawning/kubernetes/kubernetes-plugin.ts';

/** The built-in spawner of pods: `Spawner.class` is `kubernetes`. */
export default kubernetesPlugin;
