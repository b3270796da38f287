import { z } from 'zod';
import type { Invitations } from '../identity/accounts/invitations.ts';
import { time } from './models.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly invitations: Invitations;
}

/** Links to choose a password with. */
export const invitationOperations = [
  operation({
    id: 'createInvitation',
    byCommand: true,
    method: 'POST',
    path: '/users/{name}/invitation',
    audit: ['invitation.create'],
    log: 'invitation link made',
    tag: 'logins',
    summary: 'Make a one-time link with which a user chooses a password',
    description: 'An earlier link of the user stops working.',
    scopes: ['admin:users'],
    needsRecentLogin: true,
    target: 'user',
    answers: {
      201: {
        description: 'The link, this once.',
        schema: z.object({
          user: z.string(),
          purpose: z.string(),
          url: z.url(),
          expires_at: time,
        }),
      },
    },
  }).handle(async ({ params, caller }, { invitations }: Deps) => {
    const { user, purpose, url, expiresAt } = await invitations.create(caller, params.name);
    return {
      status: 201,
      logged: { purpose },
      body: {
        user: user.name,
        purpose,
        url,
        expires_at: expiresAt.toISOString(),
      },
    };
  }),
  operation({
    id: 'revokeInvitation',
    method: 'DELETE',
    path: '/users/{name}/invitation',
    audit: ['invitation.revoke'],
    tag: 'logins',
    summary: "Withdraw a user's link",
    scopes: ['admin:users'],
    target: 'user',
    answers: { 204: { description: 'It no longer works.' } },
  }).handle(async ({ params, caller }, { invitations }: Deps) => {
    await invitations.revoke(caller, params.name);
  }),
];
