import { type Logger, type LoggerOptions, pino } from 'pino';
import pinoPretty from 'pino-pretty';
import { withoutTokens } from './masked-tokens.ts';

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

/** A log that hands each event over as one line, free of the hub's tokens. */
export function createLog(options: {
  readonly level: string;
  readonly format: LogFormat;
  readonly name?: string;
  readonly write: (line: string) => void;
}): Logger {
  const { level, format, name, write } = options;
  const own: LoggerOptions = { level, ...(name !== undefined && { name }) };
  if (format.form === 'text') {
    const toText = textFormat(format);
    return pino(
      { ...own, serializers: { err: errorInOneLine } },
      { write: (line) => write(withoutTokens(toText(line))) },
    );
  }
  return pino(
    {
      ...own,
      timestamp:
        format.time === 'iso8601' ? pino.stdTimeFunctions.isoTime : pino.stdTimeFunctions.epochTime,
      ...(format.level === 'name' && { formatters: { level: (label) => ({ level: label }) } }),
    },
    { write: (line) => write(withoutTokens(line)) },
  );
}

function textFormat({ isTerminal }: LogFormat): (line: string) => string {
  const pretty = pinoPretty.prettyFactory({
    colorize: isTerminal,
    singleLine: true,
    ignore: 'pid,hostname,service',
    messageFormat: '{if service}[{service}] {end}{msg}',
    translateTime: isTerminal ? 'SYS:HH:MM:ss' : "SYS:yyyy-mm-dd'T'HH:MM:ss.lo",
    errorLikeObjectKeys: [],
  });
  // A message may hold line breaks of its own, such as that of an error.
  return (line) =>
    `${pretty(line)
      .trimEnd()
      .replaceAll(/\s*\n\s*/g, ' ')}\n`;
}

const mostCauses = 5;

/** What failed, where, and because of what: what a person at a terminal reads of a stack. */
function errorInOneLine(thrown: unknown): string {
  const parts: string[] = [];
  for (let error = thrown; error !== undefined && parts.length < mostCauses; ) {
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
