#!/usr/bin/env node
import process from 'node:process';
import { pino } from 'pino';
import pinoPretty from 'pino-pretty';
import type { CheckedConfig } from './cli/checked-config.ts';
import type { StartHub } from './cli/cli-io.ts';
import { readVersion, runCli } from './cli/run-cli.ts';
import { createHub } from './hub.ts';

/** Runs a hub until SIGTERM or SIGINT; SIGHUP reloads its configuration. */
const startHub: StartHub = async ({ checked, reload }) => {
  const log = createLog(checked);
  for (const { path, message } of checked.warnings) log.warn({ setting: path }, message);
  const hub = await createHub({
    ...checked,
    version: readVersion(),
    nodeVersion: process.version,
    environment: process.env,
    log,
  });
  announce(hub.publicUrl.href, hub.setUpUrl);
  log.info({ url: hub.publicUrl.href }, 'the hub is ready');

  process.on('SIGHUP', () => {
    reload()
      .then((reloaded) => hub.reload(reloaded))
      .catch((error: unknown) => {
        log.error(
          { err: error },
          'the configuration was not reloaded; the former one stays in force',
        );
      });
  });
  const signal = await new Promise<string>((resolve) => {
    process.once('SIGTERM', resolve);
    process.once('SIGINT', resolve);
    void hub.stopRequested.then(() => resolve('POST /hub/api/shutdown'));
  });
  log.info({ signal }, 'the hub is stopping');
  const deadline = setTimeout(
    () => {
      log.error('the hub did not stop in time');
      process.exit(1);
    },
    (checked.config.Hub.shutdown_timeout + stopReserveSeconds) * 1000,
  );
  deadline.unref();
  await hub[Symbol.asyncDispose]();
  log.info('the hub has stopped');
};

/** Beyond the time for requests in flight: for services to end and the database to be closed. */
const stopReserveSeconds = 30;

function createLog({ config }: CheckedConfig) {
  const level = config.Hub.log_level;
  if (process.stderr.isTTY) {
    return pino(
      { level },
      pinoPretty({ destination: 2, ignore: 'pid,hostname', translateTime: 'HH:MM:ss' }),
    );
  }
  return pino({ level }, pino.destination({ dest: 2, sync: true }));
}

function announce(url: string, setUpUrl: string | undefined): void {
  const setUp =
    setUpUrl === undefined
      ? ''
      : `There is no administrator yet. Open this link once to become the first one:\n  ${setUpUrl}\n`;
  // In one piece: what waits for the first line reads the link along with it.
  process.stdout.write(`The hub is ready at ${url}\n${setUp}`);
}

/** How long the process may outlive its command. */
const leftoverGraceMs = 3_000;

process.on('unhandledRejection', (reason) => {
  // A bug, but no reason to take everybody's work down: it is reported and the hub goes on.
  process.stderr.write(
    `unhandled rejection: ${reason instanceof Error ? reason.stack : String(reason)}\n`,
  );
});

process.exitCode = await runCli(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  startHub,
});

// All that the hub opened is closed by now: what still keeps the process going is a plugin's.
setTimeout(() => {
  process.stderr.write(
    'Ended, although something still ran: a plugin opens connections and starts timers in open, not in create, and ends them in [Symbol.asyncDispose].\n',
  );
  process.exit();
}, leftoverGraceMs).unref();
