import { resolve } from 'node:path';
import { openAuditFile } from '../platform/audit/audit-file.ts';
import { createAlikeEntries, entriesOf } from '../platform/store/alike-entries.ts';
import { targetsOf } from '../platform/store/audit-store.ts';
import type { AuditRow } from '../platform/store/tables.ts';
import type { Foundation } from './foundation.ts';

/** Counts what is recorded, and writes it to `Hub.audit_file` where there is one. */
export function watchAudit({ config, audit, metrics, log, disposables }: Foundation): void {
  const { audit_file: file } = config.Hub;
  const lines =
    file === undefined
      ? undefined
      : disposables.use(openAuditFile({ file: resolve(config.directory, file), log }));
  const calm = lines && disposables.use(createAlikeEntries((row) => lines.write(present(row))));
  metrics.observeAuditFile(() => lines?.droppedLines ?? 0);
  audit.onRecord((row) => {
    metrics.countAudit(row.result);
    calm?.add(row);
  });
}

/** Records in the audit log that this instance has started; that it stops, when it is disposed of. */
export async function recordLife({
  audit,
  instance,
  version,
}: Pick<Foundation, 'audit' | 'instance' | 'version'>): Promise<AsyncDisposable> {
  const target = { kind: 'hub', name: instance.name } as const;
  await audit.recordAlone({ action: 'hub.start', target, detail: { version } });
  return {
    [Symbol.asyncDispose]: () => audit.recordAlone({ action: 'hub.stop', target }),
  };
}

/** As the API presents a row, but for its id, which the database gives. */
function present(row: AuditRow): object {
  const { target, users } = targetsOf(row);
  const { entry_count: count = 1 } = row;
  return {
    at: new Date(row.at).toISOString(),
    actor: {
      kind: row.actor_kind,
      name: row.actor_name,
      session_id: row.session_id,
      token_id: row.token_id,
      address: row.address,
    },
    action: row.action,
    target: target === undefined ? null : { ...target, part: target.part ?? null },
    users,
    result: row.result,
    detail: JSON.parse(row.detail),
    instance: row.instance,
    count,
    ...(count > 1 && { entries: entriesOf(row).map(present) }),
  };
}
