import { z } from 'zod';
import type { Origins } from '../platform/http/origins.ts';
import { type Server, unreachableSince } from '../workloads/servers/server.ts';
import {
  type Share,
  type ShareCode,
  type ShareRecipient,
  scopesOfShare,
} from '../workloads/sharing/share.ts';
import { maxScopes } from '../workloads/sharing/share-scopes.ts';
import { codeLifetimeSeconds } from '../workloads/sharing/sharing.ts';
import { names, time } from './models.ts';
import type { ModelOf } from './operation.ts';

const namedModel = z.object({ name: z.string() });

const sharedServerModel = z
  .object({
    user: namedModel,
    name: z.string().describe('Empty for the default server.'),
    url: z.string(),
    full_url: z.string(),
    ready: z.boolean(),
  })
  .meta({ id: 'SharedServer' });

export const shareModel = z
  .object({
    server: sharedServerModel,
    scopes: names,
    user: namedModel.nullable(),
    group: namedModel.nullable(),
    kind: z.enum(['user', 'group']),
    created_at: time,
  })
  .meta({ id: 'Share', description: "What a user or a group may do with another user's server." });

export const shareCodeModel = z
  .object({
    id: z.string(),
    server: sharedServerModel,
    scopes: names,
    created_at: time,
    expires_at: time,
    exchange_count: z.int().describe('How often it was accepted.'),
    last_exchanged_at: time.nullable(),
  })
  .meta({ id: 'ShareCode', description: 'A code that gives a share to all who accept it.' });

export const newShareCodeModel = shareCodeModel
  .extend({
    code: z.string().describe('Shown this once.'),
    accept_url: z.string().describe('Path of the page that accepts it.'),
    full_accept_url: z.url(),
  })
  .meta({ id: 'NewShareCode' });

const scopes = z
  .array(z.string().max(1_000))
  .max(maxScopes)
  .nullish()
  .transform((given) => given ?? [])
  .describe('Of this server: without a filter or with its own.');

const name = z.string().min(1).max(1_000);

/** Whom a server is shared with, and how far. */
export const shareBody = z
  .strictObject({ user: name.nullish(), group: name.nullish(), scopes })
  .refine(({ user, group }) => (user == null) !== (group == null), {
    error: 'name either a user or a group',
  });

export const shareCodeBody = z
  .strictObject({
    scopes,
    expires_in: z
      .int()
      .min(codeLifetimeSeconds.min)
      .max(codeLifetimeSeconds.max)
      .default(codeLifetimeSeconds.usual)
      .describe('Seconds.'),
  })
  .prefault({});

export function recipientIn({ user, group }: z.output<typeof shareBody>): ShareRecipient {
  return user == null ? { kind: 'group', name: group ?? '' } : { kind: 'user', name: user };
}

/** How shares and codes are shown. */
export interface SharePresenter {
  share(share: Share): ModelOf<typeof shareModel>;
  code(code: ShareCode): ModelOf<typeof shareCodeModel>;
  newCode(code: ShareCode, secret: string): ModelOf<typeof newShareCodeModel>;
}

export function createSharePresenter(deps: {
  readonly prefixOf: (server: Pick<Server, 'userName' | 'name'>) => string;
  readonly origins: Pick<Origins, 'hub' | 'of' | 'urlOf'>;
  /** Path of the page that accepts a code. */
  readonly acceptUrl: (code: string) => string;
}): SharePresenter {
  const { prefixOf, origins, acceptUrl } = deps;

  function presentServer(server: Server): ModelOf<typeof sharedServerModel> {
    const owner = { kind: 'server', userName: server.userName, serverName: server.name } as const;
    const prefix = prefixOf(server);
    return {
      user: { name: server.userName },
      name: server.name,
      url: origins.urlOf(prefix),
      full_url: origins.of(owner) + prefix,
      ready: server.state === 'running' && unreachableSince(server) === undefined,
    };
  }

  const code = (shareCode: ShareCode): ModelOf<typeof shareCodeModel> => ({
    id: shareCode.id,
    server: presentServer(shareCode.server),
    scopes: scopesOfShare(shareCode),
    created_at: shareCode.createdAt.toISOString(),
    expires_at: shareCode.expiresAt.toISOString(),
    exchange_count: shareCode.exchangeCount,
    last_exchanged_at: shareCode.lastExchangedAt?.toISOString() ?? null,
  });

  return {
    code,
    share: (share) => ({
      server: presentServer(share.server),
      scopes: scopesOfShare(share),
      user: share.recipient.kind === 'user' ? { name: share.recipient.name } : null,
      group: share.recipient.kind === 'group' ? { name: share.recipient.name } : null,
      kind: share.recipient.kind,
      created_at: share.createdAt.toISOString(),
    }),
    newCode: (shareCode, secret) => ({
      ...code(shareCode),
      code: secret,
      accept_url: acceptUrl(secret),
      full_accept_url: origins.hub + acceptUrl(secret),
    }),
  };
}
