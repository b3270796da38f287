import type { Command } from 'commander';
import { HubError } from '../../../platform/errors.ts';
import type { Finding } from '../../../plugin/host/finding.ts';
import type { CheckedConfig } from '../checked-config.ts';
import type { CliIo } from '../cli-io.ts';
import { asking } from '../performing.ts';
import { findRunningHub } from '../start-command.ts';
import { loadFor, withConfig } from '../with-config.ts';

const marks = { ok: 'ok', warning: 'WARNING', failed: 'FAILED', skipped: 'skipped' } as const;

/** Adds `hub doctor`. */
export function addDoctorCommand(program: Command, io: CliIo): void {
  asking(withConfig(program.command('doctor')), ['listServices'])
    .description(
      'check the configuration and everything around it, and say how to fix what is wrong',
    )
    .option('--json', 'print the findings as JSON')
    .action(async ({ json }: { readonly json?: boolean }, command: Command) => {
      await runDoctor(await loadFor(command, io), io, { json: json === true });
    });
}

/** Prints what is found. Throws HubError when something is wrong. */
export async function runDoctor(
  checked: CheckedConfig,
  io: CliIo,
  { json }: { readonly json: boolean },
): Promise<void> {
  const { examine } = await import('./doctor.ts');
  const found = await examine(checked, findRunningHub(checked.config));
  // What is wrong first.
  const findings = ['failed', 'warning', 'ok', 'skipped'].flatMap((state) =>
    found.filter((each) => each.state === state),
  );
  io.stdout.write(json ? `${JSON.stringify(findings, undefined, 2)}\n` : formatFindings(findings));
  const wrong = findings.filter(({ state }) => state === 'failed').length;
  if (wrong === 0) return;
  throw new HubError('bad_request', wrong === 1 ? 'One check failed.' : `${wrong} checks failed.`);
}

function formatFindings(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  return findings
    .map(({ check, state, detail, fix }) => {
      const line = `${marks[state].padEnd(7)}  ${check.padEnd(width)}  ${detail}\n`;
      return fix === undefined ? line : `${line}${' '.repeat(width + 11)}to fix it: ${fix}\n`;
    })
    .join('');
}
