import { describe, test } from 'vitest';
import plugin from '../../../plugins/docker.ts';
import { spawnerContract } from '../../../test/contract/testing.ts';
import { contractCommands as commands } from '../../../test/support/container-commands.ts';
import { busyImage, hasDocker, useDocker } from '../../../test/support/docker-engine.ts';

describe.runIf(hasDocker())('the Docker spawner keeps the contract', () => {
  const docker = useDocker();
  const options = { host: docker.host, image: busyImage, network: 'host', api_timeout: 5 };
  const engine = { takeAway: () => docker.freeze(), bringBack: async () => docker.thaw() };

  test.for(spawnerContract({ plugin, options, commands, engine }))('$name', ({ run }) => run());
});
