import { z } from 'zod';
import { maxNewUsers } from '../identity/accounts/accounts.ts';
import type { Batches, BatchReport } from '../identity/accounts/batches.ts';
import type { Invitations } from '../identity/accounts/invitations.ts';
import { importVerdicts, type UserImports, undoMs } from '../identity/accounts/user-imports.ts';
import type { InvitationState, InvitationStore } from '../identity/users/invitation-store.ts';
import type { UserInfoStore } from '../identity/users/user-info-store.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import { HubError } from '../platform/errors.ts';
import { type Phrase, type SavedPhrase, savePhrase, text } from '../platform/texts/text.ts';
import { maxFileLines } from './new-users-file.ts';
import { operation } from './operation.ts';

export interface Deps {
  readonly userImports: UserImports;
  readonly users: Pick<UserStore, 'list'>;
  readonly userInfo: Pick<UserInfoStore, 'ofAll'>;
  readonly invitations: Pick<Invitations, 'isUsed'>;
  readonly invitationStore: Pick<InvitationStore, 'listByUser'>;
  readonly batches: Pick<Batches, 'find'>;
  /** Milliseconds since 1970, by the clock of the database. */
  readonly now: () => number;
}

const wantedUser = z.object({
  name: z.string(),
  displayName: z.string().optional(),
  email: z.string().optional(),
  groups: z.array(z.string()).max(100).default([]),
  roles: z.array(z.string()).max(100).default([]),
  isAdmin: z.boolean().default(false),
});

const importedUser = z
  .object({
    name: z.string(),
    display_name: z.string().optional(),
    email: z.string().optional(),
    groups: z.array(z.string()).max(100).default([]).describe('They must exist.'),
    roles: z.array(z.string()).max(100).default([]).describe('They must exist.'),
    admin: z.boolean().default(false),
  })
  .transform(({ display_name: displayName, admin: isAdmin, ...rest }) => ({
    ...rest,
    displayName,
    isAdmin,
  }));

const importResult = z.object({
  name: z.string(),
  result: z
    .enum([...importVerdicts, 'created'])
    .describe(
      '`alike`: differs only by capital letters from another name. `create`: would be made.',
    ),
  reason: z.string().optional(),
});

/** Users by the list. */
export const userImportOperations = [
  operation({
    id: 'importUsers',
    byCommand: true,
    method: 'POST',
    path: '/user-imports',
    audit: ['user.create'],
    tag: 'users',
    summary: 'Create users with their display names, e-mail addresses, groups and roles',
    description:
      'Each by itself: what is wrong with one stops none of the others. Groups need `groups`, roles `admin:roles`.',
    scopes: ['admin:users'],
    needsRecentLogin: true,
    body: z.object({
      users: z.array(importedUser).min(1).max(maxNewUsers),
      dry_run: z.boolean().default(false).describe('Only tells what would be done.'),
    }),
    answers: {
      200: { description: 'What became of each, in their order.', schema: z.array(importResult) },
    },
  }).handle(async ({ body, caller, may }, { userImports }: Pick<Deps, 'userImports'>) => {
    const verdicts = await userImports.judge(caller, may, body.users);
    const results: z.output<typeof importResult>[] = [];
    for (const [index, { name, verdict, reason }] of verdicts.entries()) {
      const user = body.users[index];
      if (verdict !== 'create' || body.dry_run || user === undefined)
        results.push({ name, result: verdict, ...inEnglish(reason) });
      else {
        const problem = await problemOf(() => userImports.add(caller, may, user));
        results.push({ name, result: problem === undefined ? 'created' : 'invalid', ...problem });
      }
    }
    return { status: 200, body: results };
  }),
  operation({
    id: 'undoUserImport',
    byCommand: true,
    method: 'DELETE',
    path: '/user-imports',
    audit: ['user.delete'],
    log: 'import of users undone',
    tag: 'users',
    summary:
      'Delete users whom the caller imported within the last hour and who have not been here',
    scopes: ['delete:users'],
    needsRecentLogin: true,
    body: z.object({ usernames: z.array(z.string()).min(1).max(maxNewUsers) }),
    answers: {
      200: {
        description: 'What became of each, in their order.',
        schema: z.array(
          z.object({
            name: z.string(),
            result: z.enum(['deleted', 'kept']),
            reason: z.string().optional(),
          }),
        ),
      },
    },
  }).handle(async ({ body, caller }, { userImports }: Pick<Deps, 'userImports'>) => {
    const results: { name: string; result: 'deleted' | 'kept'; reason?: string }[] = [];
    for (const name of body.usernames) {
      const problem = await problemOf(() => userImports.undo(caller, name));
      results.push({ name, result: problem === undefined ? 'deleted' : 'kept', ...problem });
    }
    return {
      status: 200,
      body: results,
      logged: { users: results.filter(({ result }) => result === 'deleted').length },
    };
  }),
  operation({
    id: 'checkNewUsers',
    audience: 'page',
    method: 'POST',
    path: '/admin/new-users',
    audit: ['user.create'],
    tag: 'users',
    summary: 'Say what would become of each line of a list of new users',
    scopes: ['admin:users'],
    needsRecentLogin: true,
    body: z.object({ users: z.array(wantedUser).max(maxFileLines) }),
    answers: {
      200: {
        description: 'The verdicts, in the order of the lines.',
        schema: z.array(
          z.object({
            name: z.string(),
            verdict: z.enum(importVerdicts),
            reason: z.custom<SavedPhrase>().optional(),
          }),
        ),
      },
    },
  }).handle(async ({ body, caller, may }, { userImports }: Pick<Deps, 'userImports'>) => {
    const verdicts = await userImports.judge(caller, may, body.users);
    return {
      status: 200,
      body: verdicts.map(({ reason, ...rest }) => ({
        ...rest,
        ...(reason !== undefined && { reason: savePhrase(reason) }),
      })),
    };
  }),
  operation({
    id: 'addNewUser',
    audience: 'page',
    method: 'POST',
    path: '/admin/import-users',
    audit: ['user.create'],
    tag: 'users',
    summary: 'Create one user of a list',
    scopes: ['admin:users'],
    needsRecentLogin: true,
    body: wantedUser,
    answers: { 204: { description: 'The user is there.' } },
  }).handle(async ({ body, caller, may }, { userImports }: Pick<Deps, 'userImports'>) => {
    await userImports.add(caller, may, body);
  }),
  operation({
    id: 'undoNewUser',
    audience: 'page',
    method: 'POST',
    path: '/admin/batches/{batch}/undo/{name}',
    audit: ['user.delete'],
    log: 'user deleted',
    tag: 'users',
    summary: 'Delete a user of a list who has not been here yet',
    scopes: ['delete:users'],
    needsRecentLogin: true,
    target: 'user',
    answers: { 204: { description: 'The user is gone.' } },
  }).handle(async ({ params, caller }, deps: Pick<Deps, 'userImports' | 'batches' | 'now'>) => {
    const report = await deps.batches.find(params.batch, caller.user?.id ?? '');
    if (report === undefined || !isUndoable(report, deps.now()) || !isOf(report, params.name))
      throw new HubError('conflict', text`It is too late to undo this.`);
    await deps.userImports.undo(caller, params.name, new Date(report.startedAt));
  }),
];

/** How the users of a list are since they were made. */
export interface ImportedUser {
  readonly name: string;
  readonly email: string | undefined;
  /** `used`: has been here; `none`: has had no link. */
  readonly state: InvitationState | 'none';
  /** When the link ends. */
  readonly expiresAt: Date | undefined;
}

/** What can still be done about users that were made together; undefined for what made none. */
export async function followUpOf(
  report: BatchReport,
  deps: Omit<Deps, 'userImports' | 'batches'>,
): Promise<
  | {
      readonly made: readonly ImportedUser[];
      readonly canInvite: boolean;
      readonly isUndoable: boolean;
    }
  | undefined
> {
  if (report.doneNames === undefined) return undefined;
  const { users, userInfo, invitationStore, invitations } = deps;
  const made: ImportedUser[] = [];
  for (let from = 0; from < report.doneNames.length; from += maxNewUsers) {
    const onlyNames = report.doneNames.slice(from, from + maxNewUsers);
    const { items } = await users.list({ limit: maxNewUsers, onlyNames });
    const found = items.filter(({ createdAt }) => createdAt.getTime() >= report.startedAt);
    const ids = found.map(({ id }) => id);
    const [infos, links] = await Promise.all([
      userInfo.ofAll(ids),
      invitationStore.listByUser(ids, new Date(deps.now())),
    ]);
    for (const { id, name, lastActivityAt } of found) {
      const link = links.get(id)?.find(({ purpose }) => purpose === 'invitation');
      const state = lastActivityAt !== undefined ? 'used' : (link?.state ?? 'none');
      made.push({ name, email: infos.get(id)?.email, state, expiresAt: link?.expiresAt });
    }
  }
  return {
    made,
    canInvite: invitations.isUsed,
    isUndoable: isUndoable(report, deps.now()),
  };
}

const isUndoable = ({ finishedAt, doneNames = [] }: BatchReport, now: number) =>
  finishedAt !== undefined && now - finishedAt < undoMs && doneNames.length > 0;

const isOf = ({ doneNames = [] }: BatchReport, name: string) => doneNames.includes(name);

/** Why one of several is not done; throws what stops all of them. */
async function problemOf(
  work: () => Promise<unknown>,
): Promise<{ readonly reason: string } | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (!(error instanceof HubError) || error.code === 'storage_unavailable') throw error;
    return { reason: error.message };
  }
}

const inEnglish = (reason: Phrase | undefined) =>
  reason === undefined ? {} : { reason: String(reason) };
