import { resolve } from 'node:path';
import { pino } from 'pino';
import type { AnswerOf } from '../../../operations/operations.ts';
import type { Config } from '../../../platform/config/config.ts';
import { messageOf } from '../../../platform/errors.ts';
import { hubCommand } from '../../../platform/files/program-folder.ts';
import { openDatabase } from '../../../platform/store/open-database.ts';
import { probeDatabase } from '../../../platform/store/probe-database.ts';
import { type Finding, failed, ok, skipped, warning } from '../../../plugin/host/finding.ts';
import { askForServices } from '../command-entrance.ts';

/** How the services are that the running hub manages. */
export async function checkManagedServices(config: Config): Promise<readonly Finding[]> {
  const check = 'managed services';
  if (config.Hub.services.every(({ command }) => command === undefined)) return [];
  const unknown = [skipped(check, 'no hub answers that runs them')];
  try {
    const { Hub, directory } = config;
    const probe = await probeDatabase(Hub.database_url, directory);
    // Opening it would bring it to this version.
    if (probe.schemaVersion !== probe.newestSchemaVersion) return unknown;
    await using database = await openDatabase(Hub.database_url, {
      directory: resolve(directory),
      log: pino({ level: 'silent' }),
    });
    const services = await askForServices(database, config);
    if (services === undefined) return unknown;
    return Object.values(services).flatMap((each) =>
      each.managed === true ? findingOf(each) : [],
    );
  } catch (error) {
    return [skipped(check, String(messageOf(error)))];
  }
}

function findingOf({
  name,
  state,
  since,
  stopped,
  last_error: reason,
}: AnswerOf<'listServices'>[string]): Finding {
  const check = `service ${name}`;
  const detail = `${state?.replace('_', '-')} since ${since}${reason ? `: ${reason}` : ''}`;
  switch (state) {
    case 'ready':
      return ok(check, detail);
    case 'crash_looping':
    case 'unhealthy':
    case 'restarting':
      return failed(check, detail, `see what it wrote: ${hubCommand(`logs ${name}`)}`);
    case 'starting':
      return warning(check, detail, 'look again when it has had time to start');
    case 'stopped':
    case 'stopping':
    case null:
    case undefined:
      return skipped(check, stopped ? `stopped by hand since ${stopped.at}` : detail);
  }
}
