import { z } from 'zod';
import type { Sharing } from '../workloads/sharing/sharing.ts';
import { operation } from './operation.ts';
import {
  newShareCodeModel,
  recipientIn,
  type SharePresenter,
  shareBody,
  shareCodeBody,
  shareCodeModel,
  shareModel,
} from './share-models.ts';

export interface Deps {
  readonly sharing: Sharing;
  readonly presentShares: SharePresenter;
}

const shares = { description: 'The shares.', schema: z.array(shareModel) };
const codes = { description: 'The codes, without themselves.', schema: z.array(shareCodeModel) };
const ended = { 204: { description: 'Ended; live connections close.' } } as const;

/** With whom servers are shared, and by which codes. */
export const shareOperations = [
  operation({
    id: 'listSharesOfOwner',
    method: 'GET',
    path: '/shares/{name}',
    tag: 'shares',
    summary: "List with whom a user's servers are shared",
    scopes: ['read:shares'],
    target: 'user',
    isPaged: 'in_envelope',
    answers: { 200: shares },
  }).handle(async ({ params, page }, { sharing, presentShares }: Deps) => {
    const { items, total } = await sharing.sharesOfOwner(params.name, page);
    return { status: 200, items: items.map(presentShares.share), total };
  }),
  operation({
    id: 'listSharesOfServer',
    method: 'GET',
    path: '/shares/{name}/{server}',
    aliases: ['/shares/{name}/'],
    tag: 'shares',
    summary: 'List with whom a server is shared',
    scopes: ['read:shares'],
    target: 'server',
    isPaged: 'in_envelope',
    answers: { 200: shares },
  }).handle(async ({ params, page }, { sharing, presentShares }: Deps) => {
    const { items, total } = await sharing.sharesOfServer(params.name, params.server, page);
    return { status: 200, items: items.map(presentShares.share), total };
  }),
  operation({
    id: 'shareServer',
    method: 'POST',
    path: '/shares/{name}/{server}',
    audit: ['share.grant'],
    aliases: ['/shares/{name}/'],
    tag: 'shares',
    summary: 'Share a server with a user or a group',
    description:
      'Adds to what is shared already; access to the server where no scopes are given. The caller must hold all of it, and `read:users:name` or `read:groups:name` for the recipient.',
    scopes: ['shares'],
    target: 'server',
    actsOnUser: true,
    needsRecentLogin: true,
    body: shareBody,
    answers: { 200: { description: 'All that is shared with the recipient.', schema: shareModel } },
  }).handle(async ({ params, body, caller }, { sharing, presentShares }: Deps) => {
    const server = await sharing.serverOf(params.name, params.server);
    const share = await sharing.grant(caller, server, recipientIn(body), body.scopes);
    return { status: 200, body: presentShares.share(share) };
  }),
  operation({
    id: 'revokeShare',
    method: 'PATCH',
    path: '/shares/{name}/{server}',
    audit: ['share.revoke'],
    aliases: ['/shares/{name}/'],
    tag: 'shares',
    summary: 'Take from a user or a group what was shared',
    description: 'All of it where no scopes are given.',
    scopes: ['shares'],
    target: 'server',
    actsOnUser: true,
    body: shareBody,
    answers: {
      200: {
        description: 'What is left; an empty object for nothing.',
        schema: z.union([shareModel, z.strictObject({})]),
      },
    },
  }).handle(async ({ params, body }, { sharing, presentShares }: Deps) => {
    const server = await sharing.serverOf(params.name, params.server);
    const left = await sharing.revoke(server, recipientIn(body), body.scopes);
    return { status: 200, body: left === undefined ? {} : presentShares.share(left) };
  }),
  operation({
    id: 'revokeSharesOfServer',
    method: 'DELETE',
    path: '/shares/{name}/{server}',
    audit: ['share.revoke'],
    aliases: ['/shares/{name}/'],
    tag: 'shares',
    summary: 'End every share of a server',
    description: 'Codes stay.',
    scopes: ['shares'],
    target: 'server',
    actsOnUser: true,
    answers: ended,
  }).handle(async ({ params }, { sharing }: Deps) => {
    await sharing.revokeAll(await sharing.serverOf(params.name, params.server));
  }),

  operation({
    id: 'listShareCodesOfOwner',
    method: 'GET',
    path: '/share-codes/{name}',
    tag: 'shares',
    summary: "List the codes by which a user's servers can be shared",
    scopes: ['read:shares'],
    target: 'user',
    isPaged: 'in_envelope',
    answers: { 200: codes },
  }).handle(async ({ params, page }, { sharing, presentShares }: Deps) => {
    const { items, total } = await sharing.codesOfOwner(params.name, page);
    return { status: 200, items: items.map(presentShares.code), total };
  }),
  operation({
    id: 'listShareCodesOfServer',
    method: 'GET',
    path: '/share-codes/{name}/{server}',
    aliases: ['/share-codes/{name}/'],
    tag: 'shares',
    summary: 'List the codes by which a server can be shared',
    scopes: ['read:shares'],
    target: 'server',
    isPaged: 'in_envelope',
    answers: { 200: codes },
  }).handle(async ({ params, page }, { sharing, presentShares }: Deps) => {
    const { items, total } = await sharing.codesOfServer(params.name, params.server, page);
    return { status: 200, items: items.map(presentShares.code), total };
  }),
  operation({
    id: 'createShareCode',
    method: 'POST',
    path: '/share-codes/{name}/{server}',
    audit: ['share_code.create'],
    aliases: ['/share-codes/{name}/'],
    tag: 'shares',
    summary: 'Make a code that shares a server with all who accept it',
    description:
      'It works for any number of users until it expires. The caller must hold all of what it gives.',
    scopes: ['shares'],
    target: 'server',
    actsOnUser: true,
    needsRecentLogin: true,
    body: shareCodeBody,
    answers: { 200: { description: 'The code, shown this once.', schema: newShareCodeModel } },
  }).handle(async ({ params, body, caller }, { sharing, presentShares }: Deps) => {
    const server = await sharing.serverOf(params.name, params.server);
    const { scopes, expires_in: expiresInSeconds } = body;
    const { shareCode, code } = await sharing.createCode(caller, server, {
      scopes,
      expiresInSeconds,
    });
    return { status: 200, body: presentShares.newCode(shareCode, code) };
  }),
  operation({
    id: 'deleteShareCodes',
    method: 'DELETE',
    path: '/share-codes/{name}/{server}',
    audit: ['share_code.delete'],
    aliases: ['/share-codes/{name}/'],
    tag: 'shares',
    summary: 'Delete codes of a server',
    description:
      'One code by itself or its id, all of them without either. What was shared by them stays.',
    scopes: ['shares'],
    target: 'server',
    actsOnUser: true,
    query: z.object({
      code: z.string().optional().describe('A code.'),
      id: z.string().optional().describe('Its id, as the list tells it.'),
    }),
    answers: { 204: { description: 'They work no more.' } },
  }).handle(async ({ params, query: { code, id } }, { sharing }: Deps) => {
    const server = await sharing.serverOf(params.name, params.server);
    if (code !== undefined) await sharing.deleteCode(server, { code });
    else if (id !== undefined) await sharing.deleteCode(server, { id });
    else await sharing.deleteCodes(server);
  }),

  operation({
    id: 'listServersSharedWithUser',
    method: 'GET',
    path: '/users/{name}/shared',
    tag: 'shares',
    summary: 'List what is shared with a user',
    description: 'Also by groups; a server that is shared in several ways is there several times.',
    scopes: ['read:users:shares'],
    target: 'user',
    isPaged: 'in_envelope',
    answers: { 200: shares },
  }).handle(async ({ params, page }, { sharing, presentShares }: Deps) => {
    const { items, total } = await sharing.sharedWith({ kind: 'user', name: params.name }, page);
    return { status: 200, items: items.map(presentShares.share), total };
  }),
  operation({
    id: 'getShareOfUser',
    method: 'GET',
    path: '/users/{name}/shared/{owner}/{server}',
    aliases: ['/users/{name}/shared/{owner}/'],
    tag: 'shares',
    summary: 'Read how a server is shared with a user',
    scopes: ['read:users:shares'],
    target: 'user',
    answers: { 200: { description: 'The share.', schema: shareModel } },
  }).handle(async ({ params }, { sharing, presentShares }: Deps) => {
    const { name, owner, server } = params;
    const share = await sharing.shareWith({ kind: 'user', name }, owner, server);
    return { status: 200, body: presentShares.share(share) };
  }),
  operation({
    id: 'endShareOfUser',
    method: 'DELETE',
    path: '/users/{name}/shared/{owner}/{server}',
    audit: ['share.revoke'],
    aliases: ['/users/{name}/shared/{owner}/'],
    tag: 'shares',
    summary: 'Leave a server that is shared with a user',
    scopes: ['users:shares'],
    target: 'user',
    answers: ended,
  }).handle(({ params: { name, owner, server } }, { sharing }: Deps) =>
    sharing.leave({ kind: 'user', name }, owner, server),
  ),
  operation({
    id: 'listServersSharedWithGroup',
    method: 'GET',
    path: '/groups/{group}/shared',
    tag: 'shares',
    summary: 'List what is shared with a group',
    scopes: ['read:groups:shares'],
    target: 'group',
    isPaged: 'in_envelope',
    answers: { 200: shares },
  }).handle(async ({ params: { group }, page }, { sharing, presentShares }: Deps) => {
    const { items, total } = await sharing.sharedWith({ kind: 'group', name: group }, page);
    return { status: 200, items: items.map(presentShares.share), total };
  }),
  operation({
    id: 'getShareOfGroup',
    method: 'GET',
    path: '/groups/{group}/shared/{owner}/{server}',
    aliases: ['/groups/{group}/shared/{owner}/'],
    tag: 'shares',
    summary: 'Read how a server is shared with a group',
    scopes: ['read:groups:shares'],
    target: 'group',
    answers: { 200: { description: 'The share.', schema: shareModel } },
  }).handle(async ({ params: { group, owner, server } }, { sharing, presentShares }: Deps) => {
    const share = await sharing.shareWith({ kind: 'group', name: group }, owner, server);
    return { status: 200, body: presentShares.share(share) };
  }),
  operation({
    id: 'endShareOfGroup',
    method: 'DELETE',
    path: '/groups/{group}/shared/{owner}/{server}',
    audit: ['share.revoke'],
    aliases: ['/groups/{group}/shared/{owner}/'],
    tag: 'shares',
    summary: 'End what is shared with a group',
    scopes: ['groups:shares'],
    target: 'group',
    answers: ended,
  }).handle(({ params: { group, owner, server } }, { sharing }: Deps) =>
    sharing.leave({ kind: 'group', name: group }, owner, server),
  ),
];
