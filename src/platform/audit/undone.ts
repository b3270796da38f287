import { HubError } from '../errors.ts';
import { currentAttempt } from './actor.ts';
import type { AuditEvent } from './audit-event.ts';

/** Codes of what went wrong inside, and not in the request. */
const failures: ReadonlySet<string> = new Set([
  'internal',
  'spawn_failed',
  'upstream_failed',
  'upstream_timeout',
  'unavailable',
  'storage_unavailable',
]);

/**
 * What is recorded of an attempt that was refused or failed, by whichever entrance; undefined for nothing.
 * `place` says where something was refused before it was an operation.
 */
export function undoneAction(
  error: unknown,
  place: AuditEvent['detail'] = {},
): AuditEvent | undefined {
  const attempt = currentAttempt();
  const code = error instanceof HubError ? error.code : 'internal';
  const isRefusal = error instanceof HubError && error.isRefusal;
  if (!isRefusal && (attempt?.action === undefined || !failures.has(code))) return undefined;
  return {
    action: attempt?.action ?? 'access',
    result: isRefusal ? 'refused' : 'failed',
    ...(attempt?.target !== undefined && { target: attempt.target }),
    detail: { ...(attempt === undefined ? place : { operation: attempt.operation }), code },
  };
}
