import { z } from 'zod';
import type { Lockouts } from '../identity/authentication/login-throttle.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import { time } from './models.ts';
import { operation, view } from './operation.ts';

export interface Deps {
  readonly lockouts: Lockouts;
}

const kind = z.enum(['user', 'address']);

const lockoutModel = z
  .object({
    kind,
    subject: z.string().describe('The name of the user, or the address.'),
    failures: z.int(),
    last_failure: time,
    locked_until: time,
  })
  .meta({ id: 'Lockout' });

/** Who has to wait after failed logins. */
export const lockoutOperations = [
  operation({
    id: 'listLockouts',
    byCommand: true,
    method: 'GET',
    path: '/lockouts',
    tag: 'logins',
    summary: 'List who has to wait after failed logins',
    scopes: ['admin:users'],
    answers: {
      200: {
        description: 'Users and addresses.',
        schema: z.object({ lockouts: z.array(lockoutModel) }),
      },
    },
  }).handle(async (_request, { lockouts }: Deps) => ({
    status: 200,
    body: {
      lockouts: (await lockouts.list()).map((record) => ({
        kind: record.kind,
        subject: record.subject,
        failures: record.failures,
        last_failure: new Date(record.lastFailureAt).toISOString(),
        locked_until: new Date(record.lockedUntil).toISOString(),
      })),
    },
  })),
  operation({
    id: 'liftLockout',
    byCommand: true,
    method: 'DELETE',
    path: '/lockouts',
    audit: ['lockout.lift'],
    log: 'lock-out lifted',
    tag: 'logins',
    summary: 'Forget the failed logins of a user or an address',
    scopes: ['admin:users'],
    query: z.object({
      kind: kind.describe('Of what.'),
      subject: z.string().describe('The name or the address.'),
    }),
    answers: { 204: { description: 'They are forgotten.' } },
  }).handle(async ({ query }, { lockouts }: Deps) => {
    if (!(await lockouts.lift(query))) {
      throw new HubError('not_found', text`There are no failed logins to forget.`);
    }
    return { status: 204, logged: { kind: query.kind, subject: query.subject.slice(0, 100) } };
  }),
  view({ id: 'viewLockouts', path: '/admin/lockouts', scopes: ['admin:users'] }).handle(
    (_request, { lockouts }: Deps) => lockouts.list(),
  ),
];
