import { fileURLToPath } from 'node:url';
import { test } from 'vitest';
import plugin from '../../../plugins/local-process.ts';
import { spawnerContract } from '../../../test/contract/testing.ts';
import { nodeCommand } from '../../../test/support/node-command.ts';

const app = (name: string, ...rest: string[]) => [
  ...nodeCommand,
  fileURLToPath(new URL(`../../../fixtures/apps/${name}.ts`, import.meta.url)),
  ...rest,
];

const contract = spawnerContract({
  plugin,
  options: {},
  sockets: true,
  commands: { serves: app('web-server'), stubborn: app('ignores-sigterm') },
});

test.for(contract)('local-process keeps the contract: $name', ({ run }) => run());
