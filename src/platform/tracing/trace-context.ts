import type { IncomingHttpHeaders } from 'node:http';

/** What a request says of the trace that it belongs to. */
export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
  /** What tracing systems pass on with it (`tracestate`), if anything. */
  readonly state: string | undefined;
}

const parentPattern =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const sampledFlag = 1;

/**
 * Reads `traceparent` and `tracestate` (W3C Trace Context Level 2 §3.2, §3.3). Undefined without a valid
 * `traceparent`; of a version to come its first four fields are read (§4.3).
 */
export function readTraceParent(headers: IncomingHttpHeaders): TraceParent | undefined {
  if (headers['traceparent'] === undefined) return undefined;
  const match = parentPattern.exec(String(headers['traceparent']));
  const [, version, traceId, spanId, flags = '', more] = match ?? [];
  if (traceId === undefined || spanId === undefined) return undefined;
  if (version === '00' && more !== undefined) return undefined;
  const isSampled = (Number.parseInt(flags, 16) & sampledFlag) !== 0;
  return { traceId, spanId, isSampled, state: readState(String(headers['tracestate'] ?? '')) };
}

/** Header names and values in turn. */
export function traceHeaders({ traceId, spanId, isSampled, state }: TraceParent): string[] {
  const parent = ['traceparent', `00-${traceId}-${spanId}-0${Number(isSampled)}`];
  return state === undefined ? parent : [...parent, 'tracestate', state];
}

const memberPattern =
  /^([a-z0-9][a-z0-9_*/@-]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/;
const maxMembers = 32;
/** At least what each system passes on (§3.3.1.5); members beyond it are left out. */
const maxStateLength = 512;

/** The members as far as they fit; undefined where there are none, or one is not valid (§3.3.1). */
function readState(header: string): string | undefined {
  const members = header
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '');
  const keys = members.map((member) => memberPattern.exec(member)?.[1]);
  if (keys.includes(undefined) || new Set(keys).size < keys.length || keys.length > maxMembers) {
    return undefined;
  }
  let state = '';
  for (const member of members) {
    const longer = state === '' ? member : `${state},${member}`;
    if (longer.length > maxStateLength) break;
    state = longer;
  }
  return state === '' ? undefined : state;
}
