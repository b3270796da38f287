import { readPlace, readTime, writePlace } from '../../audit/audit-query.ts';
import type { AuditResult } from '../../audit/deed.ts';
import type { AuditStore } from '../../store/audit-store.ts';
import { activityPage } from './activity-page.ts';
import type { AdminContext } from './admin-context.ts';

const pageLength = 50;
const longestText = 255;

/** `/hub/admin/activity`: the audit log. */
export function adminActivityRoutes(
  admin: AdminContext,
  { auditLog }: { readonly auditLog: Pick<AuditStore, 'list'> },
): void {
  const { pages } = admin;

  admin.get('/admin/activity', async (ctx, who) => {
    who.require('read:audit');
    const query = new URLSearchParams(ctx.querystring);
    const textOf = (name: string) => (query.get(name) ?? '').trim().slice(0, longestText);
    const [actor, target, action] = [textOf('actor'), textOf('target'), textOf('action')];
    const [since, until] = [readTime(textOf('since')), readTime(textOf('until'))];
    const result = resultOf(textOf('result'));
    const after = textOf('after');
    const { entries, next } = await auditLog.list({
      filter: {
        ...(actor !== '' && { actor }),
        ...(target !== '' && { target }),
        ...(action !== '' && { action }),
        ...(result !== undefined && { result }),
        ...(since !== undefined && { since }),
        ...(until !== undefined && { until }),
      },
      limit: pageLength,
      after: after === '' ? undefined : readPlace(after),
    });
    pages.send(
      ctx,
      activityPage({
        layout: await pages.layoutFor(ctx),
        entries,
        filter: {
          actor,
          target,
          action,
          result: result ?? '',
          since: since === undefined ? '' : textOf('since'),
          until: until === undefined ? '' : textOf('until'),
        },
        next: next && writePlace(next),
        isFirstPage: after === '',
      }),
    );
  });
}

function resultOf(text: string): AuditResult | undefined {
  return text === 'done' || text === 'refused' || text === 'failed' ? text : undefined;
}
