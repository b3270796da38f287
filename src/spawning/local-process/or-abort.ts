import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';

/** Waits for the end of a server no longer than a signal allows. Throws `internal` when that aborts. */
export async function orAbort<Result>(work: Promise<Result>, signal: AbortSignal): Promise<Result> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () =>
    reject(new HubError('internal', text`The server could not be ended in time.`));
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
