import { execPath } from 'node:process';
import { fileURLToPath } from 'node:url';
import plugin from '../../../plugins/local-process.ts';
import { describeSpawner } from '../../../test/contract/testing.ts';

const app = (name: string, ...rest: string[]) => [
  execPath,
  fileURLToPath(new URL(`../../../fixtures/apps/${name}.ts`, import.meta.url)),
  ...rest,
];

describeSpawner('local-process', {
  plugin,
  options: {},
  sockets: true,
  commands: {
    serves: app('web-server'),
    exits: app('exit-at-once', '3'),
    stubborn: app('ignores-sigterm'),
    missing: ['no-such-program'],
  },
});
