import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Returns how to collect young objects alone, as V8 offers it to whoever asks by its flag: here to one
 * holder, since the flag is taken back before anything else could look.
 */
export function createYoungCollector(): () => void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options: {
    readonly type: 'minor';
    readonly execution: 'sync';
  }) => void;
  setFlagsFromString('--no-expose-gc');
  return () => collect({ type: 'minor', execution: 'sync' });
}
