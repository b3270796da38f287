import type { Logger } from 'pino';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import type { Instance } from './instance.ts';
import type { InstanceDirectory } from './instance-directory.ts';

/** A reload reaches the others within this time. */
const settledAfterMs = 5_000;

/** Says in the log which instances have other settings than this one, whenever that changes. */
export function watchSettings(hub: {
  readonly database: Pick<HubDatabase, 'onChange'>;
  readonly log: Logger;
  readonly instance: Pick<Instance, 'id'>;
  readonly directory: Pick<InstanceDirectory, 'refresh'>;
}): Disposable {
  const { database, log } = hub;
  let reported = '';
  let timer: NodeJS.Timeout | undefined;

  async function compare(): Promise<void> {
    const live = (await hub.directory.refresh()).filter(({ isLive }) => isLive);
    const own = live.find(({ id }) => id === hub.instance.id);
    if (own === undefined) return;
    const others = live
      .filter(({ settingsDigest }) => settingsDigest !== own.settingsDigest)
      .map(({ name }) => name);
    const found = others.join(' ');
    if (found === reported) return;
    reported = found;
    if (others.length === 0) log.info({}, 'instance settings consistent again');
    else
      log.warn(
        { instances: others },
        `other instances have other settings than this one: give all the same configuration, then run ${hubCommand('reload')}`,
      );
  }

  function compareSoon(): void {
    clearTimeout(timer);
    timer = setTimeout(() => {
      compare().catch((error: unknown) =>
        log.debug({ err: error }, 'could not compare the settings of the instances'),
      );
    }, settledAfterMs);
    timer.unref();
  }

  compareSoon();
  const stopListening = database.onChange(compareSoon, ['instances_changed', 'all']);
  return {
    [Symbol.dispose]() {
      stopListening();
      clearTimeout(timer);
    },
  };
}
