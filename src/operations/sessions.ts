import { z } from 'zod';
import type { Caller } from '../identity/rbac/access-check.ts';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import { flag, time } from './models.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly users: Pick<UserStore, 'getByName'>;
  readonly logins: Pick<LoginSessions, 'listOfUser' | 'end' | 'endAllOfUser'>;
}

const sessionModel = z
  .object({
    id: z.string(),
    authenticator: z.string(),
    created: time,
    last_seen: time,
    expires_at: time,
    address: z.string().nullable(),
    user_agent: z.string().nullable(),
    current: z.boolean().describe('Whether the request itself belongs to it.'),
  })
  .meta({ id: 'Session', description: 'A login of a browser.' });

/** Where a user is logged in, and which of it the caller uses. */
export async function loginsOf(
  userId: string,
  { sessionId }: Pick<Caller, 'sessionId'>,
  logins: Pick<LoginSessions, 'listOfUser'>,
) {
  const sessions = await logins.listOfUser(userId);
  return sessions.map((session) => ({ ...session, isCurrent: session.sessionId === sessionId }));
}

export const sessionOperations = [
  operation({
    id: 'listSessions',
    method: 'GET',
    path: '/users/{name}/sessions',
    tag: 'sessions',
    summary: 'List where a user is logged in',
    scopes: ['read:tokens'],
    target: 'user',
    answers: {
      200: {
        description: 'The logins.',
        schema: z.object({ sessions: z.array(sessionModel) }),
      },
    },
  }).handle(async ({ params, caller }, { users, logins }: Deps) => {
    const sessions = await loginsOf((await users.getByName(params.name)).id, caller, logins);
    return {
      status: 200,
      body: {
        sessions: sessions.map((session) => ({
          id: session.sessionId,
          authenticator: session.authenticator,
          created: session.createdAt.toISOString(),
          last_seen: session.lastSeenAt.toISOString(),
          expires_at: session.expiresAt.toISOString(),
          address: session.address ?? null,
          user_agent: session.userAgent ?? null,
          current: session.isCurrent,
        })),
      },
    };
  }),
  operation({
    id: 'endSessions',
    method: 'DELETE',
    path: '/users/{name}/sessions',
    audit: ['session.end', 'logout'],
    tag: 'sessions',
    summary: 'End every login of a user',
    scopes: ['tokens'],
    alwaysForOneself: true,
    actsOnUser: true,
    target: 'user',
    query: z.object({
      keep_current: flag
        .optional()
        .describe('Whether the login that the request itself belongs to goes on.'),
    }),
    answers: { 204: { description: 'They have ended, with their tokens.' } },
  }).handle(async ({ params, query, caller }, { users, logins }: Deps) => {
    const { id } = await users.getByName(params.name);
    const except = query.keep_current === true ? caller.sessionId : undefined;
    await logins.endAllOfUser(id, except === undefined ? {} : { except });
  }),
  operation({
    id: 'endSession',
    method: 'DELETE',
    path: '/users/{name}/sessions/{id}',
    audit: ['session.end', 'logout'],
    tag: 'sessions',
    summary: 'End one login of a user',
    scopes: ['tokens'],
    alwaysForOneself: true,
    actsOnUser: true,
    target: 'user',
    answers: { 204: { description: 'It has ended, with its tokens.' } },
  }).handle(async ({ params }, { users, logins }: Deps) => {
    const sessions = await logins.listOfUser((await users.getByName(params.name)).id);
    const session = sessions.find(({ sessionId }) => sessionId === params.id);
    if (session === undefined)
      throw new HubError('not_found', text`This user has no such session.`);
    await logins.end(session.sessionId);
  }),
];
