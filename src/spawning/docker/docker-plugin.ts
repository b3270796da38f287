import type { SpawnerPlugin } from '../../plugin/host/spawner.ts';
import {
  type DockerOptions,
  type DockerProfileOptions,
  findOptionProblems,
  optionsSchema,
  profileOptionsSchema,
} from './docker-options.ts';
import { createDockerSpawner } from './docker-spawner.ts';

/** The spawner whose servers are containers of Docker or Podman. */
export const dockerPlugin: SpawnerPlugin<DockerOptions, DockerProfileOptions> = {
  kind: 'spawner',
  name: 'docker',
  section: 'DockerSpawner',
  optionsSchema,
  profileOptionsSchema,
  secretOptions: ['registry_password'],
  findProblems: findOptionProblems,
  create: createDockerSpawner,
};
