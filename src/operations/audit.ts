import { z } from 'zod';
import type { LoginSessions } from '../identity/sessions/login-sessions.ts';
import type { UserStore } from '../identity/users/user-store.ts';
import type { AuditEntry } from '../platform/audit/audit-event.ts';
import { readPlace, readTime, writePlace } from '../platform/audit/audit-query.ts';
import { HubError } from '../platform/errors.ts';
import type { AuditFilter, AuditStore } from '../platform/store/audit-store.ts';
import { text } from '../platform/texts/text.ts';
import { freeData, time, wholeNumber } from './models.ts';
import { type ModelOf, operation, view } from './operation.ts';
import { loginsOf } from './sessions.ts';

export interface Deps {
  readonly auditLog: Pick<AuditStore, 'list' | 'entriesOf'>;
  readonly users: Pick<UserStore, 'findByName'>;
  readonly logins: Pick<LoginSessions, 'listOfUser'>;
}

const defaultLimit = 100;
const maxEntries = 1_000;

const activityPageLength = 50;
const maxTextLength = 255;
/** A field of the filter form; what is no text is none. */
const typedText = z
  .string()
  .catch('')
  .transform((typed) => typed.trim().slice(0, maxTextLength));

const results = ['done', 'refused', 'failed'] as const;

const activityFilter = z.object({
  actor: typedText,
  target: typedText,
  action: typedText,
  address: typedText,
  since: typedText,
  until: typedText,
  result: z.enum(results).optional().catch(undefined),
});

function filterOf({
  since,
  until,
  result,
  ...names
}: z.output<typeof activityFilter>): AuditFilter {
  const [from, to] = [readTime(since), readTime(until)];
  return {
    ...Object.fromEntries(Object.entries(names).filter(([, typed]) => typed !== '')),
    ...(result !== undefined && { result }),
    ...(from !== undefined && { since: from }),
    ...(to !== undefined && { until: to }),
  };
}

/** Of a file: more is for the API. */
const maxExported = 10_000;

const entryModel = z
  .object({
    id: z.int(),
    at: time,
    actor: z.object({
      kind: z
        .enum(['user', 'service', 'anonymous', 'hub', 'command_line', 'proxy_api'])
        .describe('`proxy_api`: the JupyterHub that has the token of `Hub.proxy_api`.'),
      name: z.string().nullable(),
      session_id: z.string().nullable().describe('Of the login; not a credential.'),
      token_id: z.string().nullable().describe('Of the token that was presented.'),
      address: z.string().nullable(),
    }),
    action: z.string(),
    target: z
      .object({
        kind: z.string(),
        name: z
          .string()
          .describe('Of the user whose server, token or login it is, else of the target itself.'),
        part: z
          .string()
          .nullable()
          .describe('Name of the server, or id of the token or login, of that user.'),
      })
      .nullable(),
    users: z
      .array(z.string())
      .describe(
        'Users who were made together, or who were put into a group or taken out; else empty. Each is found as a `target`.',
      ),
    result: z.enum(results),
    detail: freeData,
    instance: z
      .string()
      .nullable()
      .describe('Instance of the hub that did it; null for a command.'),
    count: z
      .int()
      .describe(
        'For how many entries alike it stands, of one actor, action, result and target: it is like the last of them. `GET /audit/{entry}` has them all.',
      ),
  })
  .meta({ id: 'AuditEntry', description: 'Who did what.' });

const moment = (description: string) =>
  z
    .string()
    .refine((text) => readTime(text) !== undefined, 'must be a time such as 2026-01-31T12:00:00Z')
    .optional()
    .describe(description);

/** The audit log. */
export const auditOperations = [
  operation({
    id: 'listAudit',
    method: 'GET',
    path: '/audit',
    tag: 'hub',
    summary: 'Read who did what, newest first',
    description: 'Every filter given must match. The actions: docs/reference/audit.md.',
    scopes: ['read:audit'],
    query: z.object({
      actor: z.string().optional().describe('Name of the user or service that acted.'),
      target: z
        .string()
        .optional()
        .describe(
          'Name of the user, group, role, service or client it was done to, also of one of `users`.',
        ),
      action: z.string().optional().describe('Such as `user.create`.'),
      address: z.string().optional().describe('From which it was done.'),
      result: z.enum(results).optional(),
      since: moment('Not before this time (ISO 8601).'),
      until: moment('Before this time (ISO 8601).'),
      limit: wholeNumber
        .optional()
        .describe(`How many at most: ${defaultLimit} unless given, never more than ${maxEntries}.`),
      after: z.string().optional().describe('`next` of the page before.'),
    }),
    answers: {
      200: {
        description: 'A page; it stays the same whatever is recorded meanwhile.',
        schema: z.object({
          entries: z.array(entryModel),
          next: z.string().nullable().describe('For `after`; null at the end.'),
        }),
      },
    },
  }).handle(async ({ query }, { auditLog }: Deps) => {
    const { actor, target, action, address, result, since, until } = query;
    const { limit = defaultLimit, after } = query;
    const place = after === undefined ? undefined : readPlace(after);
    const { entries, next } = await auditLog.list({
      filter: {
        ...(actor !== undefined && { actor }),
        ...(target !== undefined && { target }),
        ...(action !== undefined && { action }),
        ...(address !== undefined && { address }),
        ...(result !== undefined && { result }),
        ...(since !== undefined && { since: new Date(since) }),
        ...(until !== undefined && { until: new Date(until) }),
      },
      limit: Math.min(Math.max(limit, 1), maxEntries),
      after: place,
    });
    return {
      status: 200,
      body: { entries: entries.map(present), next: next === undefined ? null : writePlace(next) },
    };
  }),
  view({
    id: 'viewActivity',
    path: '/admin/activity',
    scopes: ['read:audit'],
    query: activityFilter.extend({ after: typedText }),
  }).handle(async ({ query, caller, may }, { auditLog, users, logins }: Deps) => {
    const { actor, target, action, address, result, after } = query;
    const filter = filterOf(query);
    const { since, until } = filter;
    const { entries, next } = await auditLog.list({
      filter,
      limit: activityPageLength,
      after: after === '' ? undefined : readPlace(after),
    });
    const user = await users.findByName(actor || target);
    const mayReadLogins = user && may('read:tokens', { kind: 'user', name: user.name });
    return {
      entries,
      /** The user whose activity it is. */
      about: user && {
        name: user.name,
        isSuspended: user.isSuspended,
        sessions: mayReadLogins ? await loginsOf(user.id, caller, logins) : [],
      },
      filter: {
        actor,
        target,
        action,
        address,
        result: result ?? '',
        since: since === undefined ? '' : query.since,
        until: until === undefined ? '' : query.until,
      },
      next: next && writePlace(next),
      isFirstPage: after === '',
    };
  }),
  operation({
    id: 'exportActivity',
    audience: 'page',
    method: 'POST',
    path: '/admin/activity.csv',
    audit: { none: 'It reads.' },
    tag: 'hub',
    summary: 'Read the newest entries that match, for a file',
    scopes: ['read:audit'],
    body: activityFilter,
    answers: { 200: { description: 'The entries.', schema: z.array(entryModel) } },
  }).handle(async ({ body }, { auditLog }: Deps) => {
    const found: AuditEntry[] = [];
    let after: Parameters<AuditStore['list']>[0]['after'];
    do {
      const page = await auditLog.list({ filter: filterOf(body), limit: maxEntries, after });
      found.push(...page.entries);
      after = page.next;
    } while (after !== undefined && found.length < maxExported);
    return { status: 200, body: found.map(present) };
  }),
  view({
    id: 'viewLastChange',
    path: '/admin/last-change',
    scopes: ['read:audit'],
    query: z.object({ actions: z.array(z.string()), target: z.string().optional() }),
  }).handle(async ({ query: { actions, target } }, { auditLog }: Deps) => {
    const found = await Promise.all(
      actions.map((action) => {
        const filter = { action, result: 'done', ...(target !== undefined && { target }) } as const;
        return auditLog.list({ filter, limit: 1 });
      }),
    );
    return found
      .flatMap(({ entries }) => entries)
      .toSorted((one, other) => other.at.getTime() - one.at.getTime() || other.id - one.id)
      .at(0);
  }),
  operation({
    id: 'getAuditEntry',
    method: 'GET',
    path: '/audit/{entry}',
    tag: 'hub',
    summary: 'Read the entries for which one stands',
    scopes: ['read:audit'],
    answers: {
      200: {
        description: 'Oldest first; itself where it stands for no others.',
        schema: z.object({ entries: z.array(entryModel) }),
      },
    },
  }).handle(async ({ params: { entry } }, { auditLog }: Deps) => {
    const id = /^\d{1,15}$/.test(entry) ? Number(entry) : 0;
    const entries = await auditLog.entriesOf(id);
    if (entries === undefined) {
      throw new HubError('not_found', text`There is no such entry of the audit log.`);
    }
    return { status: 200, body: { entries: entries.map(present) } };
  }),
];

/** A row as JSON. */
function present(entry: AuditEntry): ModelOf<typeof entryModel> {
  const { id, at, count, actor, action, target, users, result, detail, instance } = entry;
  return {
    id,
    at: at.toISOString(),
    actor: {
      kind: actor.kind,
      name: actor.name ?? null,
      session_id: actor.sessionId ?? null,
      token_id: actor.tokenId ?? null,
      address: actor.address ?? null,
    },
    action,
    target:
      target === undefined
        ? null
        : { kind: target.kind, name: target.name, part: target.part ?? null },
    users: [...users],
    result,
    detail: { ...detail },
    instance: instance ?? null,
    count,
  };
}
