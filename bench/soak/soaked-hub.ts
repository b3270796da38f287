// Runs a hub from the configuration file named as its argument, and tells its parent what it holds
// each time it is asked. To be run with --expose-gc.
import process from 'node:process';
import { pino } from 'pino';
import { loadCheckedConfig } from '../../src/entrances/cli/checked-config.ts';
import { createHub } from '../../src/composition/hub.ts';
import { measureHolding } from './holding.ts';

const checked = await loadCheckedConfig({ file: process.argv[2], env: process.env });
const hub = await createHub({
  ...checked,
  version: 'soak',
  nodeVersion: process.versions.node,
  environment: process.env,
  log: pino({ level: 'fatal' }),
  droppedLogLines: () => 0,
});

process.on('message', (message) => {
  if (message === 'measure') void measureHolding().then((measured) => process.send?.(measured));
  else void hub[Symbol.asyncDispose]().then(() => process.exit(0));
});
process.send?.('ready');
