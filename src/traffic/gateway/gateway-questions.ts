import { z } from 'zod';
import type { Authorizer } from '../../identity/rbac/authorizer.ts';
import type { ScopeSet } from '../../identity/rbac/scope.ts';
import { HubError } from '../../platform/errors.ts';
import { text } from '../../platform/texts/text.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { DisclosedUserInfo, ExchangeGuardCode } from './direct-hub-api.ts';
import type { FindVisitor } from './login-access.ts';
import type { RouteAccess } from './route-access.ts';

/** The hub as far as gateway processes may ask it, by way of the gateway within the hub. */
export interface QuestionedHub {
  readonly access: Pick<RouteAccess, 'identify' | 'findBearer'>;
  readonly findVisitor: FindVisitor;
  /** The name of the user whose login has a session id, while it is open. */
  readonly userOfSession: (sessionId: string) => Promise<string | undefined>;
  readonly groupNamesOf: (userName: string) => Promise<readonly string[]>;
  readonly infoOf: (userName: string) => Promise<DisclosedUserInfo>;
  readonly exchangeCode: ExchangeGuardCode;
  readonly routes: Pick<RouteTable, 'list'>;
  readonly authorizer: Pick<Authorizer, 'membership'>;
  readonly reports: { take(report: GatewayReport): void };
}

const parameter = z.string().min(1).max(4_096);
const count = z.number().nonnegative();

const date = z.codec(z.number(), z.date(), {
  decode: (ms) => new Date(ms),
  encode: (at) => at.getTime(),
});

/** Who makes a request. What users note about their tokens stays in the hub. */
const caller = z.object({
  owner: z.object({ kind: z.enum(['user', 'service']), name: z.string() }),
  scopes: z.codec(z.array(z.string()), z.instanceof<new () => ScopeSet>(Set), {
    decode: (scopes) => new Set(scopes),
    encode: (scopes) => [...scopes],
  }),
  sessionId: z.string().exactOptional(),
  accessToken: z
    .object({
      id: z.string(),
      clientId: z.string().exactOptional(),
      note: z.codec(z.string(), z.string(), { decode: (note) => note, encode: () => '' }),
      expiresAt: date.exactOptional(),
    })
    .exactOptional(),
});

/** What a gateway process reports now and then. */
const gatewayReport = z.object({
  name: z.string().min(1).max(200).describe('Of the gateway.'),
  number: z.int().positive().describe('Grows with each report; a repeated one counts once.'),
  web_sockets: z.int().nonnegative().describe('Open now.'),
  host: z.string().max(300).default('').describe('Host name of its machine.'),
  pid: z.int().nonnegative().default(0),
  up_ms: count.default(0).describe('For how long it has run.'),
  connections: count.default(0).describe('Of clients, open now.'),
  requests: count.default(0).describe('Forwarded to servers and services since it was started.'),
  heard_at_ms: count
    .default(0)
    .describe('When the hub sent the heartbeat that was heard last, by the clock of the hub.'),
  used_routes: z.array(z.string()).max(100_000).describe('Prefixes, since the report before.'),
  sent_routes: z
    .array(z.string())
    .max(100_000)
    .optional()
    .describe('Those of them to which visitors sent something; all of them when left out.'),
  loads: z
    .array(z.tuple([z.string(), count, count, count, count]))
    .max(100_000)
    .default([])
    .describe(
      'Since the report before, by prefix: requests, answers, milliseconds until these began, milliseconds that WebSockets were open.',
    ),
  forwarded: z
    .array(
      z.object({
        route_kind: z.string().max(20),
        service: z.string().max(300),
        totals: z.record(z.string().regex(/^\d{3}$/), z.int().nonnegative()),
        buckets: z.array(z.int().nonnegative()).max(100),
        sum: count,
      }),
    )
    .max(10_000)
    .describe('Requests since the report before.'),
  dropped_spans: count
    .default(0)
    .describe('Of traces, since it was started, that no collector got.'),
});

export type GatewayReport = z.output<typeof gatewayReport>;

/** Everything that a gateway process asks its hub: what it sends, what comes back, and how the hub finds it. */
const questions = {
  /** Undefined for a token that identifies no one. */
  bearerOfToken: declare({ token: parameter }, caller.optional(), ({ token }, { access }) =>
    access.identify(token),
  ),
  /** Of a token that was shown before. */
  bearerOfTokenId: declare({ tokenId: parameter }, caller.optional(), ({ tokenId }, { access }) =>
    access.findBearer(tokenId),
  ),
  /** Whose login a session id names, confirmed with its provider where that is due; undefined for no live one. */
  visitor: declare(
    { sessionId: parameter },
    z.object({ caller: caller.required({ sessionId: true }), expiresAtMs: z.number() }).optional(),
    ({ sessionId }, hub) => hub.findVisitor(sessionId),
  ),
  /** Name of the user of a session; undefined where it is not open. */
  userOfSession: declare({ sessionId: parameter }, z.string().optional(), ({ sessionId }, hub) =>
    hub.userOfSession(sessionId),
  ),
  groupsOfUser: declare({ user: parameter }, z.array(z.string()).readonly(), ({ user }, hub) =>
    hub.groupNamesOf(user),
  ),
  /** What upstreams may learn of a user beside the name. */
  infoOfUser: declare(
    { user: parameter },
    z.object({ displayName: z.string().optional(), verifiedEmail: z.string().optional() }),
    ({ user }, hub) => hub.infoOf(user),
  ),
  /** Names of users by group. */
  membersOfGroups: declare(
    { groups: z.array(parameter).max(1_000) },
    z.record(z.string(), z.array(z.string())),
    async ({ groups }, { authorizer }) => {
      const membership = await authorizer.membership();
      return Object.fromEntries(groups.map((group) => [group, [...membership.membersOf(group)]]));
    },
  ),
  /** In the name of the client of a route that the gateway guards (RFC 6749 §4.1.3). */
  exchangeCode: declare(
    { clientId: parameter, code: parameter, redirectUri: parameter, codeVerifier: parameter },
    z.discriminatedUnion('outcome', [
      z.object({
        outcome: z.literal('issued'),
        accessToken: z.string(),
        expiresInSeconds: z.number().optional(),
      }),
      z.object({ outcome: z.literal('refused'), description: z.string().optional() }),
    ]),
    async ({ clientId, ...code }, { routes, exchangeCode }) => {
      const isGuarded = routes
        .list()
        .some((route) => route.access === 'gateway' && route.clientId === clientId);
      if (!isGuarded) throw new HubError('bad_request', text`No guarded route has such a client.`);
      return await exchangeCode(clientId, code);
    },
  ),
  /** When routes were used last, and the figures for the metrics of the hub. */
  report: declare(gatewayReport.shape, z.void(), async (report, { reports }) =>
    reports.take(report),
  ),
} as const;

type Questions = typeof questions;
export type QuestionName = keyof Questions;
export type QuestionOf<Name extends QuestionName> = z.input<Questions[Name]['question']>;
export type AnswerOf<Name extends QuestionName> = z.output<Questions[Name]['answer']>;

/** A question of a gateway, by its name, as it is sent. */
export const askedQuestion = z.union(
  Object.entries(questions).map(([name, { question }]) =>
    z.object({ name: z.literal(name as QuestionName), question }),
  ),
);

/** What comes back to it. */
export const answeredQuestion = z.object({ answer: z.unknown().optional() });

/** Answers a question that was checked, in the form in which it is sent. */
export async function answerQuestion(
  { name, question }: z.output<typeof askedQuestion>,
  hub: QuestionedHub,
): Promise<z.input<typeof answeredQuestion>> {
  const { answer, ask } = questions[name] as unknown as ReturnType<typeof declare>;
  return { answer: z.encode(answer, await ask(question, hub)) };
}

/** Reads what came back to a question; undefined where that is no answer to it. */
export function readAnswer<Name extends QuestionName>(
  name: Name,
  body: unknown,
): { readonly answer: AnswerOf<Name> } | undefined {
  const sent = answeredQuestion.safeParse(body).data;
  const { success, data } = questions[name].answer.safeParse(sent?.answer);
  return sent !== undefined && success ? { answer: data as AnswerOf<Name> } : undefined;
}

function declare<Shape extends z.ZodRawShape, Answer extends z.ZodType>(
  shape: Shape,
  answer: Answer,
  ask: (question: z.output<z.ZodObject<Shape>>, hub: QuestionedHub) => Promise<z.output<Answer>>,
) {
  return { question: z.object(shape), answer, ask };
}
