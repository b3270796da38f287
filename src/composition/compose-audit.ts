import { resolve } from 'node:path';
import { openAuditFile } from '../audit/audit-file.ts';
import type { AuditRow } from '../store/tables.ts';
import type { Foundation } from './foundation.ts';

/** Counts what is recorded, and writes it to `Hub.audit_file` where there is one. */
export function composeAudit({
  config,
  database,
  metrics,
  log,
  disposables,
}: Pick<Foundation, 'config' | 'database' | 'metrics' | 'log' | 'disposables'>): void {
  const { audit_file: file } = config.Hub;
  const lines =
    file === undefined
      ? undefined
      : disposables.use(openAuditFile({ file: resolve(config.directory, file), log }));
  metrics.observeAuditFile(() => lines?.droppedLines ?? 0);
  database.audit.onRecord((row, targetNames) => {
    metrics.countAudit(row.result, targetNames?.length);
    if (lines === undefined) return;
    if (targetNames === undefined) lines.write(present(row));
    for (const name of targetNames ?? []) lines.write(present({ ...row, target_name: name }));
  });
}

/** As the API presents a row, but for its id, which the database gives. */
function present(row: AuditRow): object {
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
    target:
      row.target_kind === null
        ? null
        : { kind: row.target_kind, name: row.target_name, part: row.target_part },
    result: row.result,
    detail: JSON.parse(row.detail),
    instance: row.instance,
  };
}
