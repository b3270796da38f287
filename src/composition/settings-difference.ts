import type { InstanceDirectory } from '../cluster/instances/instance-directory.ts';
import type { InstanceLease } from '../cluster/instances/instance-lease.ts';
import type { Foundation } from './foundation.ts';

/** A reload reaches the others within this time. */
const settledAfterMs = 5_000;

/** Says in the log which instances have other settings than this one, whenever that changes. */
export function watchSettings(
  { database, log }: Pick<Foundation, 'database' | 'log'>,
  deps: {
    readonly instance: Pick<InstanceLease, 'id'>;
    readonly directory: Pick<InstanceDirectory, 'refresh'>;
  },
): Disposable {
  let reported = '';
  let timer: NodeJS.Timeout | undefined;

  async function compare(): Promise<void> {
    const live = (await deps.directory.refresh()).filter(({ isLive }) => isLive);
    const own = live.find(({ id }) => id === deps.instance.id);
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
        'other instances have other settings than this one: give all the same configuration, then run hub reload',
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
  const stopListening = database.onChange(({ kind }) => {
    if (kind === 'instances_changed' || kind === 'all') compareSoon();
  });
  return {
    [Symbol.dispose]() {
      stopListening();
      clearTimeout(timer);
    },
  };
}
