import { describe, test } from 'vitest';
import plugin from '../../../plugins/docker.ts';
import { spawnerContract } from '../../../test/contract/testing.ts';
import { busyImage, hasDocker, useDocker } from '../../../test/support/docker-engine.ts';

// The shell is the first process of its container, which the kernel keeps from signals it does not catch.
const serve = `
at=$(echo $HUB_SERVICE_URL | tail -c +8)
trap exit TERM
httpd -f -p $at & echo listening on $at
wait`;
const ignore =
  'trap "echo SIGTERM ignored" TERM; echo ignoring SIGTERM; while :; do sleep 0.2; done';
const commands = {
  serves: ['sh', '-c', serve],
  exits: ['sh', '-c', 'exit 3'],
  stubborn: ['sh', '-c', ignore],
  missing: ['no-such-program'],
};

describe.runIf(hasDocker())('the Docker spawner keeps the contract', () => {
  const docker = useDocker();
  const options = { host: docker.host, image: busyImage, network: 'host', api_timeout: 5 };
  const engine = { takeAway: () => docker.freeze(), bringBack: async () => docker.thaw() };

  test.for(spawnerContract({ plugin, options, commands, engine }))('$name', ({ run }) => run());
});
