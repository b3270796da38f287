import { METHODS } from 'node:http';
import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';

/** TRACE would show a script the headers it must not see (RFC 9110 §9.3.8). */
const refused = new Set(['TRACE', 'TRACK', 'CONNECT']);
/** Those of which Node.js reads a request. */
const readable: ReadonlySet<string> = new Set(METHODS);

/** Why a request with this method is not forwarded, by the hub or on its word. */
export function methodProblem(method: string): HubError | undefined {
  if (readable.has(method) && !refused.has(method)) return undefined;
  return new HubError('method_not_allowed', text`The method ${method} is not forwarded.`);
}
