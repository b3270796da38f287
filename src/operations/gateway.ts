import { z } from 'zod';
import { HubError } from '../errors.ts';
import type { ExchangeGuardCode, ToldInfo } from '../gateway/direct-hub-api.ts';
import type { GatewayFeed } from '../gateway/feed.ts';
import { feedEvent } from '../gateway/feed-events.ts';
import { answers, toCallerModel } from '../gateway/gateway-questions.ts';
import { type GatewayReports, gatewayReport } from '../gateway/gateway-report.ts';
import type { FindVisitor } from '../gateway/login-access.ts';
import type { RouteAccess } from '../gateway/route-access.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { Authorizer } from '../rbac/authorizer.ts';
import type { Caller } from '../rbac/caller.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly gatewayFeed: GatewayFeed;
  /** Whether a gateway was started by the hub itself, on its own machine. */
  readonly isOwnGateway: (caller: Caller) => boolean;
  readonly gatewayAnswers: GatewayAnswers;
  readonly gatewayReports: Pick<GatewayReports, 'take'>;
  readonly routes: Pick<RouteTable, 'list'>;
  readonly authorizer: Pick<Authorizer, 'membership'>;
}

/** What gateways ask about visitors, as the gateway within the hub knows it. */
export interface GatewayAnswers {
  readonly access: Pick<RouteAccess, 'identify' | 'findBearer'>;
  readonly findVisitor: FindVisitor;
  readonly userOfSession: (sessionId: string) => Promise<string | undefined>;
  readonly groupNamesOf: (userName: string) => Promise<readonly string[]>;
  readonly infoOf: (userName: string) => Promise<ToldInfo>;
  readonly exchangeCode: ExchangeGuardCode;
}

const tag = 'gateways';
const scopes = ['gateway'] as const;
const text = z.string().min(1).max(4_096);

/** What gateway processes ask of the hub. */
export const gatewayOperations = [
  operation({
    id: 'followGatewayFeed',
    method: 'GET',
    path: '/gateway/feed',
    tag,
    summary: 'Follow routes and revocations',
    description:
      'A snapshot, then numbered changes, with a heartbeat each second. A reader who is too slow is cut off and begins again with a new snapshot.',
    scopes,
    query: z.object({
      name: text.describe('Of the gateway.'),
      version: text.describe('Of the program of the gateway.'),
      settings: z.string().max(100).default('').describe('Digest of the settings it runs with.'),
      nonce: text.describe('Comes back in the snapshot.'),
    }),
    answers: {
      200: {
        description: 'The feed, until either side ends it.',
        schema: feedEvent,
        mediaType: 'text/event-stream',
      },
    },
  }).handle(({ query, caller }, { gatewayFeed, isOwnGateway }: Deps) => {
    const gateway = { ...query, isLocal: isOwnGateway(caller) };
    gatewayFeed.requireOpen();
    return { status: 200, events: (signal) => gatewayFeed.follow(gateway, signal) };
  }),

  operation({
    id: 'identifyTokenForGateway',
    method: 'POST',
    path: '/gateway/tokens',
    audit: { none: 'A gateway asks it of the hub for each visitor.' },
    tag,
    summary: 'Ask who the bearer of a token is',
    scopes,
    body: z.object({ token: text }),
    answers: { 200: { description: 'The bearer, null for no one.', schema: answers.token } },
  }).handle(async ({ body }, { gatewayAnswers }: Deps) => ({
    status: 200,
    body: { caller: toModel(await gatewayAnswers.access.identify(body.token)) },
  })),

  operation({
    id: 'findBearerForGateway',
    method: 'POST',
    path: '/gateway/bearers',
    audit: { none: 'A gateway asks it of the hub for each visitor.' },
    tag,
    summary: 'Ask who the bearer of a token is that was shown before',
    scopes,
    body: z.object({ token_id: text }),
    answers: { 200: { description: 'The bearer, null for no one.', schema: answers.token } },
  }).handle(async ({ body }, { gatewayAnswers }: Deps) => ({
    status: 200,
    body: { caller: toModel(await gatewayAnswers.access.findBearer(body.token_id)) },
  })),

  operation({
    id: 'findVisitorForGateway',
    method: 'POST',
    path: '/gateway/sessions',
    audit: { none: 'A gateway asks it of the hub for each visitor.' },
    tag,
    summary: 'Ask whose login a session id names',
    description: 'Confirms the login with its provider where that is due.',
    scopes,
    body: z.object({ session_id: text }),
    answers: { 200: { description: 'The user, null for no one.', schema: answers.session } },
  }).handle(async ({ body }, { gatewayAnswers }: Deps) => {
    const visitor = await gatewayAnswers.findVisitor(body.session_id);
    return {
      status: 200,
      body: { caller: toModel(visitor?.caller), expires_at_ms: visitor?.expiresAtMs ?? 0 },
    };
  }),

  operation({
    id: 'findSessionUserForGateway',
    method: 'POST',
    path: '/gateway/session-users',
    audit: { none: 'A gateway asks it of the hub for each visitor.' },
    tag,
    summary: 'Ask for the name of the user of a session',
    scopes,
    body: z.object({ session_id: text }),
    answers: {
      200: {
        description: 'The name, null where the session is not open.',
        schema: answers.sessionUser,
      },
    },
  }).handle(async ({ body }, { gatewayAnswers }: Deps) => ({
    status: 200,
    body: { user: (await gatewayAnswers.userOfSession(body.session_id)) ?? null },
  })),

  operation({
    id: 'listGroupsForGateway',
    method: 'POST',
    path: '/gateway/groups',
    audit: { none: 'A gateway asks it of the hub for each visitor.' },
    tag,
    summary: 'Ask for the groups of a user',
    scopes,
    body: z.object({ user: text }),
    answers: { 200: { description: 'Their names.', schema: answers.groups } },
  }).handle(async ({ body }, { gatewayAnswers }: Deps) => ({
    status: 200,
    body: { groups: await gatewayAnswers.groupNamesOf(body.user) },
  })),

  operation({
    id: 'readInfoForGateway',
    method: 'POST',
    path: '/gateway/infos',
    audit: { none: 'A gateway asks it of the hub for each visitor.' },
    tag,
    summary: 'Ask for the display name and the e-mail address of a user',
    scopes,
    body: z.object({ user: text }),
    answers: { 200: { description: 'What upstreams may be told.', schema: answers.info } },
  }).handle(async ({ body }, { gatewayAnswers }: Deps) => {
    const { displayName, verifiedEmail } = await gatewayAnswers.infoOf(body.user);
    return {
      status: 200,
      body: { display_name: displayName ?? null, verified_email: verifiedEmail ?? null },
    };
  }),

  operation({
    id: 'listMembersForGateway',
    method: 'POST',
    path: '/gateway/members',
    audit: { none: 'A gateway asks it of the hub for each visitor.' },
    tag,
    summary: 'Ask for the members of groups',
    scopes,
    body: z.object({ groups: z.array(text).max(1_000) }),
    answers: { 200: { description: 'Names of users by group.', schema: answers.members } },
  }).handle(async ({ body }, { authorizer }: Deps) => {
    const membership = await authorizer.membership();
    const members = body.groups.map((group) => [group, [...membership.membersOf(group)]] as const);
    return { status: 200, body: { members: Object.fromEntries(members) } };
  }),

  operation({
    id: 'exchangeCodeForGateway',
    method: 'POST',
    path: '/gateway/codes',
    audit: { none: 'A gateway asks it of the hub for each visitor.' },
    tag,
    summary: 'Exchange the authorization code of a guarded route',
    description: 'In the name of the client of a route that the gateway guards (RFC 6749 §4.1.3).',
    scopes,
    body: z.object({
      client_id: text,
      code: text,
      redirect_uri: text,
      code_verifier: text,
    }),
    answers: { 200: { description: 'The token, or why there is none.', schema: answers.code } },
  }).handle(async ({ body }, { gatewayAnswers, routes }: Deps) => {
    const { client_id: clientId, code, redirect_uri: redirectUri } = body;
    const isGuarded = routes
      .list()
      .some((route) => route.access === 'gateway' && route.clientId === clientId);
    if (!isGuarded) throw new HubError('bad_request', 'No guarded route has such a client.');
    const result = await gatewayAnswers.exchangeCode(clientId, {
      code,
      redirectUri,
      codeVerifier: body.code_verifier,
    });
    if (result.outcome === 'refused') {
      const { outcome, description } = result;
      return { status: 200, body: { outcome, ...(description !== undefined && { description }) } };
    }
    const { outcome, accessToken, expiresInSeconds } = result;
    return {
      status: 200,
      body: {
        outcome,
        access_token: accessToken,
        ...(expiresInSeconds !== undefined && { expires_in: expiresInSeconds }),
      },
    };
  }),

  operation({
    id: 'reportForGateway',
    method: 'POST',
    path: '/gateway/reports',
    audit: { none: 'A gateway asks it of the hub for each visitor.' },
    tag,
    summary: 'Report what was forwarded',
    description: 'When routes were used last, and the figures for the metrics of the hub.',
    scopes,
    body: gatewayReport,
    answers: { 200: { description: 'It is taken.', schema: z.object({}) } },
  }).handle(({ body }, { gatewayReports }: Deps) => {
    gatewayReports.take(body);
    return { status: 200, body: {} };
  }),
];

function toModel(caller: Caller | undefined) {
  return caller === undefined ? null : toCallerModel(caller);
}
