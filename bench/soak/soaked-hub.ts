// Runs a hub from the configuration file named as its argument, and tells its parent what it holds
// each time it is asked. To be run with --expose-gc.
import { readdirSync } from 'node:fs';
import process from 'node:process';
import { setTimeout as pause } from 'node:timers/promises';
import { pino } from 'pino';
import { loadCheckedConfig } from '../../src/cli/checked-config.ts';
import { createHub } from '../../src/hub.ts';

const checked = await loadCheckedConfig({ file: process.argv[2], env: process.env });
const hub = await createHub({
  ...checked,
  version: 'soak',
  nodeVersion: process.versions.node,
  environment: process.env,
  log: pino({ level: 'fatal' }),
  droppedLogLines: () => 0,
});

async function measure() {
  // Weak references and finalisers need more than one turn.
  for (let round = 0; round < 5; round += 1) {
    globalThis.gc?.();
    await pause(50);
  }
  const { heapUsed, rss, external } = process.memoryUsage();
  const resources = process.getActiveResourcesInfo();
  return {
    openFiles: readdirSync('/proc/self/fd').length,
    sockets: resources.filter((name) => name.includes('TCPSocket')).length,
    heapBytes: heapUsed,
    externalBytes: external,
    rssBytes: rss,
  };
}

process.on('message', (message) => {
  if (message === 'measure') void measure().then((measured) => process.send?.(measured));
  else void hub[Symbol.asyncDispose]().then(() => process.exit(0));
});
process.send?.('ready');
