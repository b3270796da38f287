import { expect, test } from 'vitest';
import plugin from '../../../plugins/local-process.ts';
import { spawnerContract } from '../../../test/contract/testing.ts';
import { fixtureFile, nodeCommand } from '../../../test/support/node-command.ts';
import type { SpawnerPlugin } from '../../plugin/host/spawner.ts';

const app = (name: string) => nodeCommand(fixtureFile(name));

const contract = spawnerContract({
  plugin,
  options: {},
  sockets: true,
  commands: { serves: app('web-server'), stubborn: app('ignores-sigterm') },
});

test.for(contract)('local-process keeps the contract: $name', ({ run }) => run());

test('a spawner that believes what a server says of its host does not keep the contract', async () => {
  const reports = `
    const headers = { authorization: 'token ' + process.env.HUB_API_TOKEN };
    fetch(process.env.HUB_ADDRESS_URL, { method: 'POST', headers, body: '{"port": 4711}' });
    setInterval(() => {}, 60000);`;
  const credulous = {
    ...plugin,
    async create(options, host) {
      const spawner = await plugin.create(options as never, host);
      return {
        ...spawner,
        async start(request) {
          const reported = request.awaitAddress(
            ({ host: named, port }) => `http://${named}:${port}`,
          );
          const server = await spawner.start(request as never);
          return { ...server, url: await reported };
        },
      };
    },
  } as SpawnerPlugin;
  const commands = { serves: [process.execPath, '-e', reports] };
  const suite = spawnerContract({ plugin: credulous, options: {}, commands });
  const own = suite.find(({ name }) => name.startsWith('a start leads no visitor'));
  await expect(own?.run()).rejects.toThrow('it believes the server');
});
