import { HubError } from '../errors.ts';
import { type Server, unreachableSince } from './server.ts';

export function runsAlready(): HubError {
  return new HubError('bad_request', 'The server is already running.');
}

export function withoutLease(): HubError {
  return new HubError('unavailable', 'The hub cannot start servers at the moment.', {
    hint: 'It does not reach its database. Try again in a few seconds.',
    retryAfterSeconds: 5,
  });
}

export function unreachable(server: Server): HubError {
  const since = unreachableSince(server)?.toISOString() ?? '';
  return new HubError(
    'conflict',
    `The server cannot be reached since ${since.slice(0, 19).replace('T', ' ')} UTC: the instance "${server.instance?.name}" of the hub, which runs it, is away.`,
    { hint: 'It comes back with its instance. To start it elsewhere, stop it first.' },
  );
}
