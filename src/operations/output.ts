import { z } from 'zod';
import type { Caller } from '../identity/rbac/access-check.ts';
import { HubError } from '../platform/errors.ts';
import type { Languages } from '../platform/texts/languages.ts';
import { text } from '../platform/texts/text.ts';
import {
  followOutput,
  maxOutputLines,
  type OutputSource,
} from '../spawning/processes/output-feed.ts';
import { flag, names, wholeNumber } from './models.ts';
import type { AnswerDeclaration, OperationDeclaration, OperationRequest } from './operation.ts';
import { languageAskedFor, languageQuery, translateEvents } from './translate-events.ts';

/** Who follows output now: each follower costs a connection, and asks another instance each second. */
export interface OutputFollowers {
  /** Throws `too_many_requests` beyond the limits. Call what it returns when the follower has gone. */
  enter(caller: Caller): () => void;
}

const maxOfOne = 10;
const maxOfAll = 500;

export function createOutputFollowers(): OutputFollowers {
  const counts = new Map<string, number>();
  let total = 0;
  return {
    enter({ owner }) {
      const key = `${owner.kind}:${owner.name}`;
      const count = counts.get(key) ?? 0;
      if (count >= maxOfOne || total >= maxOfAll) {
        const message = text`Too much output is followed at once.`;
        const hint =
          count >= maxOfOne
            ? text`Close some of the ${maxOfOne} that you follow already.`
            : text`Try again later, or read it without following.`;
        throw new HubError('too_many_requests', message, { hint, retryAfterSeconds: 30 });
      }
      counts.set(key, count + 1);
      total += 1;
      let isIn = true;
      return () => {
        if (!isIn) return;
        isIn = false;
        total -= 1;
        const left = (counts.get(key) ?? 1) - 1;
        if (left === 0) counts.delete(key);
        else counts.set(key, left);
      };
    },
  };
}

/** The query of an operation that answers with output. */
export const outputQuery = languageQuery.extend({
  lines: wholeNumber
    .pipe(z.int().max(maxOutputLines))
    .optional()
    .describe('How many of the last lines; all that are kept unless given.'),
  follow: flag.describe('Keep sending new lines, as server-sent events.'),
  download: flag.describe('As a file of text.'),
});

const outputEvent = z
  .object({
    lines: names.describe('Further lines, oldest first; of the first event, the last ones.'),
    skipped: z.int().optional().describe('Lines before these that were left out.'),
    restarted: z
      .literal(true)
      .optional()
      .describe('The lines before were of an earlier run: they begin again with these.'),
    problem: z.string().optional().describe('Why there are none for the moment.'),
  })
  .meta({ id: 'OutputEvent' });

/** The answers of an operation that answers with output; see `answerOutput`. */
export const outputAnswers = {
  200: {
    description:
      'Oldest first: an object of lines, text, or with `Accept: text/event-stream` a stream that continues with new lines.',
    schema: z.object({ lines: names }),
    others: { 'text/plain': z.string(), 'text/event-stream': outputEvent },
  },
} as const satisfies Readonly<Record<number, AnswerDeclaration>>;

/** Answers with the last lines of a source as the client asks for them, or has it follow them. */
export async function answerOutput(
  request: Pick<OperationRequest<OperationDeclaration>, 'caller' | 'accepts'> & {
    readonly query: z.output<typeof outputQuery>;
  },
  source: OutputSource,
  {
    followers,
    languages,
    fileName,
  }: {
    readonly followers: OutputFollowers;
    readonly languages: Pick<Languages, 'find'>;
    readonly fileName: string;
  },
) {
  const { lines, follow, download } = request.query;
  const type = request.accepts('application/json', 'text/plain', 'text/event-stream');
  if (!download && (follow || type === 'text/event-stream')) {
    const leave = followers.enter(request.caller);
    return {
      status: 200,
      events(signal: AbortSignal) {
        signal.addEventListener('abort', leave);
        const events = followOutput(source, { signal, lines });
        return translateEvents(events, 'problem', languageAskedFor(request.query, languages));
      },
    } as const;
  }
  const part = await source.read(undefined, lines);
  if (!download && type !== 'text/plain') {
    return { status: 200, body: { lines: part.lines } } as const;
  }
  return {
    status: 200,
    text: part.lines.map((line) => `${line}\n`).join(''),
    headers: download ? { 'Content-Disposition': `attachment; filename="${fileName}"` } : {},
  } as const;
}
