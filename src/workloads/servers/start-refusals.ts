import { HubError } from '../../platform/errors.ts';
import { exactTime, text } from '../../platform/texts/text.ts';
import { type Server, unreachableSince } from './server.ts';

export function runsAlready(): HubError {
  return new HubError('bad_request', text`The server is already running.`);
}

export function withoutLease(): HubError {
  return new HubError('unavailable', text`The hub cannot start servers at the moment.`, {
    hint: text`It does not reach its database. Try again in a few seconds.`,
    retryAfterSeconds: 5,
  });
}

export function unreachable(server: Server): HubError {
  const since = unreachableSince(server);
  return new HubError(
    'conflict',
    text`The server cannot be reached since ${since === undefined ? '' : exactTime(since)}: the instance "${server.instance?.name ?? ''}" of the hub, which runs it, is away.`,
    { hint: text`It comes back with its instance. To start it elsewhere, stop it first.` },
  );
}

export function nameTaken(cause: unknown): HubError {
  return new HubError('conflict', text`A server of this name exists already.`, { cause });
}

export function noSuchUser(cause?: unknown): HubError {
  return new HubError('not_found', text`There is no such user.`, { cause });
}
