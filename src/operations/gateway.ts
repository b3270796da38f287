import { z } from 'zod';
import type { Caller } from '../identity/rbac/access-check.ts';
import type { GatewayFeed } from '../traffic/gateway/feed.ts';
import { feedEvent } from '../traffic/gateway/feed-events.ts';
import {
  answeredQuestion,
  answerQuestion,
  askedQuestion,
  type QuestionedHub,
} from '../traffic/gateway/gateway-questions.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly gatewayFeed: GatewayFeed;
  /** Whether a gateway was started by the hub itself, on its own machine. */
  readonly isOwnGateway: (caller: Caller) => boolean;
  readonly questionedHub: QuestionedHub;
}

const tag = 'internal';
const scopes = ['gateway'] as const;
const parameter = z.string().min(1).max(4_096);

/** What gateway processes ask of the hub. */
export const gatewayOperations = [
  operation({
    id: 'followGatewayFeed',
    audience: 'program',
    method: 'GET',
    path: '/gateway/feed',
    tag,
    summary: 'Follow routes and revocations',
    description:
      'A snapshot, then numbered changes, with a heartbeat each second. A reader who is too slow is cut off and begins again with a new snapshot.',
    scopes,
    query: z.object({
      name: parameter.describe('Of the gateway.'),
      version: parameter.describe('Of the program of the gateway.'),
      settings: z.string().max(100).default('').describe('Digest of the settings it runs with.'),
      nonce: parameter.describe('Comes back in the snapshot.'),
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
    id: 'askForGateway',
    audience: 'program',
    method: 'POST',
    path: '/gateway/questions',
    audit: { none: 'Gateways ask it for each visitor.' },
    tag,
    summary: 'Ask what a gateway has to know',
    scopes,
    body: askedQuestion,
    answers: { 200: { description: 'As the question demands.', schema: answeredQuestion } },
  }).handle(async ({ body }, { questionedHub }: Deps) => ({
    status: 200,
    body: await answerQuestion(body, questionedHub),
  })),
];
