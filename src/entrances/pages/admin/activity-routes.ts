import type { BodyOf } from '../../../operations/operations.ts';
import { toCsv } from '../csv.ts';
import type { BoundPages, ModelOf } from '../forms/binding.ts';
import { activityPage } from './activity-page.ts';

/** `/hub/admin/activity`: the audit log. */
export function adminActivityRoutes({ page, form }: BoundPages): void {
  page('/admin/activity', 'viewActivity', ({ layout, model, may }) => {
    const { name = '' } = model.about ?? {};
    return activityPage({
      layout,
      ...model,
      may: { endSessions: may('endSessions', { name }), suspend: may('suspendUser', { name }) },
    });
  });

  form('/admin/activity.csv', 'exportActivity', {
    body: (sent) => Object.fromEntries(sent) as BodyOf<'exportActivity'>,
    done: ({ result: entries }) => ({
      file: {
        name: 'activity.csv',
        type: 'text/csv; charset=utf-8',
        text: toCsv([columns, ...entries.map(rowOf)]),
      },
    }),
  });
}

/** As the API calls them: other programs read the file. */
const columns = [
  'time',
  'actor_kind',
  'actor',
  'address',
  'session_id',
  'token_id',
  'action',
  'target_kind',
  'target',
  'part',
  'users',
  'result',
  'detail',
  'instance',
  'count',
];

function rowOf(entry: ModelOf<'exportActivity'>[number]): string[] {
  const { at, actor, action, target, users, result, detail, instance, count } = entry;
  return [
    at,
    actor.kind,
    actor.name,
    actor.address,
    actor.session_id,
    actor.token_id,
    action,
    target?.kind,
    target?.name,
    target?.part,
    users.join(' '),
    result,
    JSON.stringify(detail),
    instance,
    String(count),
  ].map((cell) => cell ?? '');
}
