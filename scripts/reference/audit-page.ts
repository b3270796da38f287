import { auditActionsOf } from '../../src/operations/operation.ts';
import { operations } from '../../src/operations/operations.ts';
import { actionLabels } from '../../src/platform/audit/action-labels.ts';
import { type AuditAction, auditActions } from '../../src/platform/audit/actions.ts';
import { reasonLabels } from '../../src/platform/audit/reason-labels.ts';
import { cell, code, generatedNote } from './markdown.ts';

/** The reference page of the audit log: every action, and the operations that are not recorded. */
export function auditPage(): string {
  const actions = Object.entries(actionLabels).map(([action, words]) => {
    const meaning = auditActions[action as AuditAction];
    const by = operations
      .filter((operation) => (auditActionsOf(operation) as readonly string[]).includes(action))
      .map(({ method, path }) => code(`${method} ${path}`));
    return `| ${code(action)} | ${cell(String(words))} | ${cell(meaning)} | ${by.join(', ')} |`;
  });
  const reasons = Object.entries(reasonLabels).map(
    ([reason, words]) => `| ${code(reason)} | ${cell(String(words))} |`,
  );
  const described = operations.filter(({ audience }) => audience === undefined);
  const unrecorded = described.flatMap(({ method, path, audit }) =>
    audit !== undefined && 'none' in audit
      ? [`| ${code(`${method} ${path}`)} | ${cell(audit.none)} |`]
      : [],
  );
  return `# Actions of the audit log

${generatedNote}

How to read the log and where it is kept: [audit](../how-to/audit.md).

## Actions

What the pages and the command line do is recorded as what these operations do.

| action | on pages | meaning | operations |
|---|---|---|---|
${actions.join('\n')}

## Reasons

What \`reason\` may be in the detail of a refused login, code or passkey, and of a server that was stopped.

| reason | on pages |
|---|---|
${reasons.join('\n')}

## Not recorded

Operations that only read are not recorded, and neither are these. A refusal is recorded all the same: as \`access\`.

| operation | why |
|---|---|
${unrecorded.join('\n')}
`;
}
