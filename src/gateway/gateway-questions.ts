import { z } from 'zod';
import type { Caller } from '../rbac/caller.ts';
import type { LoggedInVisitor } from './login-access.ts';

/** Who makes a request, as the hub tells a gateway. */
const callerModel = z
  .object({
    kind: z.enum(['user', 'service']),
    name: z.string(),
    scopes: z.array(z.string()),
    session_id: z.string().optional(),
    token: z
      .object({ id: z.string(), expires_at_ms: z.number().optional() })
      .optional()
      .describe('The token that was shown, if it has a record.'),
  })
  .meta({ id: 'GatewayCaller' });

type CallerModel = z.output<typeof callerModel>;

/** The answers of the hub, by the question. */
export const answers = {
  token: z.object({ caller: callerModel.nullable() }),
  session: z.object({ caller: callerModel.nullable(), expires_at_ms: z.number() }),
  sessionUser: z.object({ user: z.string().nullable() }),
  groups: z.object({ groups: z.array(z.string()) }),
  info: z.object({
    display_name: z.string().nullable(),
    verified_email: z.string().nullable(),
  }),
  members: z.object({ members: z.record(z.string(), z.array(z.string())) }),
  code: z.union([
    z.object({
      outcome: z.literal('issued'),
      access_token: z.string(),
      expires_in: z.number().optional(),
    }),
    z.object({ outcome: z.literal('refused'), description: z.string().optional() }),
  ]),
} as const;

export function toCallerModel({ owner, scopes, sessionId, accessToken }: Caller): CallerModel {
  const expiresAtMs = accessToken?.expiresAt?.getTime();
  return {
    kind: owner.kind,
    name: owner.name,
    scopes: [...scopes],
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(accessToken !== undefined && {
      token: {
        id: accessToken.id,
        ...(expiresAtMs !== undefined && { expires_at_ms: expiresAtMs }),
      },
    }),
  };
}

/** Undefined for a token that identifies no one. */
export function callerIn({
  caller,
}: Pick<z.output<(typeof answers)['session']>, 'caller'>): Caller | undefined {
  if (caller === null) return undefined;
  const { kind, name, scopes, session_id, token } = caller;
  return {
    owner: { kind, name },
    scopes: new Set(scopes),
    ...(session_id !== undefined && { sessionId: session_id }),
    ...(token !== undefined && {
      accessToken: {
        id: token.id,
        note: '',
        ...(token.expires_at_ms !== undefined && { expiresAt: new Date(token.expires_at_ms) }),
      },
    }),
  };
}

/** Undefined for a session that is not open. */
export function visitorIn(
  sessionId: string,
  answer: z.output<(typeof answers)['session']>,
): LoggedInVisitor | undefined {
  const caller = callerIn(answer);
  return caller && { caller: { ...caller, sessionId }, expiresAtMs: answer.expires_at_ms };
}
