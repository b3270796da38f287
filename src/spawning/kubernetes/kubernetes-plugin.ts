import type { SpawnerPlugin } from '../../plugin/host/spawner.ts';
import {
  findOptionProblems,
  type KubernetesOptions,
  type KubernetesProfileOptions,
  optionsSchema,
  profileOptionsSchema,
} from './kubernetes-options.ts';
import { createKubernetesSpawner } from './kubernetes-spawner.ts';

/** The spawner whose servers are pods of Kubernetes. */
export const kubernetesPlugin: SpawnerPlugin<KubernetesOptions, KubernetesProfileOptions> = {
  kind: 'spawner',
  name: 'kubernetes',
  section: 'KubernetesSpawner',
  optionsSchema,
  profileOptionsSchema,
  findProblems: findOptionProblems,
  create: createKubernetesSpawner,
};
