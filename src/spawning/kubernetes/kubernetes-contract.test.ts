import { describe, test } from 'vitest';
import plugin from '../../../plugins/kubernetes.ts';
import { spawnerContract } from '../../../test/contract/testing.ts';
import { canRunPods, useKubernetesApi } from '../../../test/support/kubernetes-api.ts';

// The first process of a container has no default for SIGTERM.
const webServer = `
const url = new URL(process.env.HUB_SERVICE_URL);
const server = require('node:http').createServer((request, response) => response.end('served'));
server.listen(url.port, url.hostname, () => console.log('listening on ' + url));
process.on('SIGTERM', () => process.exit());
`;
const commands = { serves: [process.execPath, '-e', webServer] };

describe.runIf(canRunPods())('the Kubernetes spawner keeps the contract', () => {
  const api = useKubernetesApi();
  const engine = {
    takeAway: () => api().stopApi(),
    bringBack: () => api().startApi(),
  };
  const names = spawnerContract({ plugin, options: {}, commands, engine }).map(({ name }) => name);

  test.for(names)('%s', async (name) => {
    const options = {
      kubeconfig: api().kubeconfigPath,
      namespace: api().namespace,
      image: 'node:test',
      run_as_user: 1000,
      // Pods of the test cluster share the network of this machine, each with an address of its own.
      listen_ip: '{pod_ip}',
    };
    await spawnerContract({ plugin, options, commands, engine })
      .find((each) => each.name === name)
      ?.run();
  });
});
