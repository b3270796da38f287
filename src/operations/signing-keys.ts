import { z } from 'zod';
import { keyStates, type SigningKeys } from '../identity/oauth/keys/signing-keys.ts';
import { HubError } from '../platform/errors.ts';
import { text } from '../platform/texts/text.ts';
import { time } from './models.ts';
import { operation, view } from './operation.ts';

export interface Deps {
  readonly signingKeys: Pick<SigningKeys, 'list' | 'rotate' | 'revoke'>;
}

const keyModel = z
  .object({
    id: z.string().describe('`kid` of the ID tokens that it signs.'),
    algorithm: z.enum(['RS256', 'ES256']),
    active_from: time,
    ends_at: time.nullable().describe('Null for the newest of its algorithm.'),
    state: z
      .enum(keyStates)
      .describe('What it does now; `lost` where no cookie secret of the hub opens it.'),
  })
  .meta({ id: 'SigningKey' });

/** The keys that sign ID tokens. */
export const signingKeyOperations = [
  operation({
    id: 'listSigningKeys',
    byCommand: true,
    method: 'GET',
    path: '/signing-keys',
    tag: 'oauth',
    summary: 'List the keys that sign ID tokens',
    scopes: ['admin:users'],
    answers: {
      200: {
        description: 'Those that have not ended.',
        schema: z.object({ keys: z.array(keyModel) }),
      },
    },
  }).handle(async (_request, { signingKeys }: Deps) => ({
    status: 200,
    body: {
      keys: (await signingKeys.list()).map(({ id, algorithm, activeFrom, endsAt, state }) => ({
        id,
        algorithm,
        active_from: activeFrom.toISOString(),
        ends_at: endsAt?.toISOString() ?? null,
        state,
      })),
    },
  })),
  operation({
    id: 'rotateSigningKeys',
    byCommand: true,
    needsRecentLogin: true,
    method: 'POST',
    path: '/signing-keys',
    audit: ['key.create'],
    log: 'next signing keys made',
    tag: 'oauth',
    summary: 'Make the next keys that sign ID tokens, which take over in a day',
    scopes: ['admin:users'],
    answers: { 204: { description: 'They are published, or were already.' } },
  }).handle((_request, { signingKeys }: Deps) => signingKeys.rotate()),
  operation({
    id: 'revokeSigningKeys',
    byCommand: true,
    needsRecentLogin: true,
    method: 'DELETE',
    path: '/signing-keys',
    audit: ['key.revoke', 'key.create'],
    log: 'signing keys revoked',
    tag: 'oauth',
    summary: 'End every key that signs ID tokens at once, as after a leak, and make new ones',
    scopes: ['admin:users'],
    answers: { 204: { description: 'Apps refuse what the former keys signed once they notice.' } },
  }).handle(async (_request, { signingKeys }: Deps) => {
    await signingKeys.revoke();
  }),
  operation({
    id: 'revokeSigningKey',
    byCommand: true,
    needsRecentLogin: true,
    method: 'DELETE',
    path: '/signing-keys/{key}',
    audit: ['key.revoke', 'key.create'],
    log: 'signing key revoked',
    tag: 'oauth',
    summary: 'End a key that signs ID tokens at once, and make a new one where it was the newest',
    scopes: ['admin:users'],
    answers: { 204: { description: 'Apps refuse what it signed once they notice.' } },
  }).handle(async ({ params }, { signingKeys }: Deps) => {
    if ((await signingKeys.revoke(params.key)) === 0) throw noSuchKey();
    return { status: 204, logged: { key: params.key } };
  }),
  view({ id: 'viewSigningKeys', path: '/admin/keys', scopes: ['admin:users'] }).handle(
    (_request, { signingKeys }: Deps) => signingKeys.list(),
  ),
  view({
    id: 'viewSigningKeyRevocation',
    path: '/admin/keys/{key}/revoke',
    scopes: ['admin:users'],
  }).handle(async ({ params }, { signingKeys }: Deps) => {
    const key = (await signingKeys.list()).find(({ id }) => id === params.key);
    if (key === undefined) throw noSuchKey();
    return key;
  }),
];

function noSuchKey(): HubError {
  return new HubError('not_found', text`There is no such key.`);
}
