import { hostname } from 'node:os';
import { pid } from 'node:process';
import { type Logger, type LoggerOptions, pino } from 'pino';

/** The format of the lines of a log. */
export interface LogFormat {
  readonly form: 'json' | 'text';
  /** Of JSON lines: ISO 8601 in UTC, or milliseconds since 1970. */
  readonly time: 'iso8601' | 'epoch_ms';
  /** Of JSON lines: `info`, or pino's 30. */
  readonly level: 'name' | 'number';
  /** Whether text is for a terminal: colours, and the time without the day. */
  readonly isTerminal: boolean;
}

/** A log that hands each event over as one line. */
export async function createLog(options: {
  readonly level: string;
  readonly format: LogFormat;
  readonly name?: string;
  readonly write: (line: string) => void;
}): Promise<Logger> {
  const { level, format, name, write } = options;
  const base = { pid, hostname: hostname(), ...(name !== undefined && { name }) };
  const own: LoggerOptions = { level, base };
  if (format.form === 'text') {
    const toText = await textFormat(format);
    return pino(
      { ...own, serializers: { err: errorInOneLine } },
      { write: (line) => write(toText(line)) },
    );
  }
  const timestamp = format.time === 'iso8601' ? createIsoTime() : pino.stdTimeFunctions.epochTime;
  const log = pino(
    {
      ...own,
      timestamp,
      ...(format.level === 'name' && { formatters: { level: (label) => ({ level: label }) } }),
    },
    { write },
  );
  const infoLevel = format.level === 'name' ? '"info"' : String(log.levels.values['info']);
  const baseMembers = JSON.stringify(base).slice(1, -1);
  const lineOf = (event: FrequentEvent) =>
    `{"level":${infoLevel}${timestamp()},${baseMembers},${JSON.stringify(event).slice(1)}\n`;
  jsonForms.set(log, { lineOf, write });
  return log;
}

/** An event that is one of very many: flat, and free of names that every line has. */
export interface FrequentEvent {
  readonly [field: string]: string | number | undefined;
  readonly msg: string;
}

interface JsonForm {
  readonly lineOf: (event: FrequentEvent) => string;
  readonly write: (line: string) => void;
}

const jsonForms = new WeakMap<Logger, JsonForm>();

/** An event of the level `info` as a line in the form of the log, for another stream; undefined where that is text. */
export function jsonLine(log: Logger, event: FrequentEvent): string | undefined {
  return jsonForms.get(log)?.lineOf(event);
}

/**
 * Makes the way for very many events of the level `info`, at a third of what a line costs otherwise:
 * each request that is forwarded pays for its own. Undefined where they are not logged.
 */
export function frequentInfo(log: Logger): ((event: FrequentEvent) => void) | undefined {
  if (!log.isLevelEnabled('info')) return undefined;
  const form = jsonForms.get(log);
  if (form === undefined) return ({ msg, ...fields }) => log.info(fields, msg);
  return (event) => form.write(form.lineOf(event));
}

/** Writes the time of a line; those of the same millisecond share the text. */
function createIsoTime(): () => string {
  let lastMs = 0;
  let text = '';
  return () => {
    const nowMs = Date.now();
    if (nowMs !== lastMs) {
      lastMs = nowMs;
      text = `,"time":"${new Date(nowMs).toISOString()}"`;
    }
    return text;
  };
}

async function textFormat({ isTerminal }: LogFormat): Promise<(line: string) => string> {
  const { default: pinoPretty } = await import('pino-pretty');
  const pretty = pinoPretty.prettyFactory({
    singleLine: true,
    errorLikeObjectKeys: [],
    ...(isTerminal
      ? {
          colorize: true,
          ignore: 'pid,hostname',
          hideObject: true,
          messageFormat: shortMessage,
          translateTime: 'SYS:HH:MM:ss',
        }
      : {
          ignore: 'pid,hostname,service',
          messageFormat: '{if service}[{service}] {end}{msg}',
          translateTime: "SYS:yyyy-mm-dd'T'HH:MM:ss.lo",
        }),
  });
  // A message may hold line breaks of its own, such as that of an error.
  return (line) =>
    `${pretty(line)
      .split('\n')
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .join(' ')}\n`;
}

/** Of fields that tell nothing to a person who watches, or that the line shows already. */
const unshownFields = new Set([
  'level',
  'time',
  'pid',
  'hostname',
  'name',
  'service',
  'servicePid',
  'msg',
]);

/** `[wiki] service ended, it will be restarted reason="exited with code 1" failures=2` */
function shortMessage(line: Readonly<Record<string, unknown>>): string {
  const { service, msg } = line;
  const fields = Object.entries(line)
    .filter(([name]) => !unshownFields.has(name))
    .map(([name, value]) => {
      const isPlain = /^[^\s"]+$/.test(String(value)) && typeof value !== 'object';
      return ` ${name}=${isPlain ? String(value) : JSON.stringify(value)}`;
    });
  const prefix = typeof service === 'string' ? `[${service}] ` : '';
  return `${prefix}${String(msg ?? '')}${fields.join('')}`;
}

const maxCauses = 5;

/** What failed, where, and because of what: what a person at a terminal reads of a stack. */
function errorInOneLine(thrown: unknown): string {
  const parts: string[] = [];
  for (let error = thrown; error !== undefined && parts.length < maxCauses; ) {
    if (!(error instanceof Error)) {
      parts.push(String(error));
      break;
    }
    const place = /\n\s+at (.*)/.exec(error.stack ?? '')?.[1];
    parts.push(`${error.name}: ${error.message}${place === undefined ? '' : ` (at ${place})`}`);
    error = error.cause;
  }
  return parts.join('; caused by ');
}
