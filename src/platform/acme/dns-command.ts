import { type ExecFileException, execFile } from 'node:child_process';
import { AcmeError } from './acme-client.ts';

/** Time for a record to be written and to reach all name servers, which the command waits for. */
const limitMs = 300_000;
const maxOutputBytes = 64 * 1024;
const maxShown = 500;

export interface DnsChange {
  readonly action: 'add' | 'remove';
  /** Of the TXT record, such as `_acme-challenge.hub.example.org`. */
  readonly name: string;
  readonly value: string;
}

/**
 * Runs `Hub.acme.dns_command`, which has `{action}`, `{name}` and `{value}` among its words. Throws AcmeError where it
 * fails, writes more than 64 KiB or takes longer than five minutes; it is killed then.
 */
export async function runDnsCommand(
  command: readonly string[],
  change: DnsChange,
  {
    environment,
    signal,
    timeoutMs = limitMs,
  }: {
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly signal?: AbortSignal;
    readonly timeoutMs?: number;
  },
): Promise<void> {
  const [program = '', ...args] = command.map((word) =>
    word.replaceAll(/\{(action|name|value)\}/g, (_, key: keyof DnsChange) => change[key]),
  );
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  execFile(
    program,
    args,
    {
      env: environment,
      timeout: timeoutMs,
      maxBuffer: maxOutputBytes,
      killSignal: 'SIGKILL',
      ...(signal !== undefined && { signal }),
    },
    (error, _stdout, stderr) => {
      if (error === null) return resolve();
      const said = stderr.trim().slice(-maxShown);
      const what = `Hub.acme.dns_command (${program}, ${change.action} ${change.name})`;
      // Without its cause, which has all words of the command: they may be secrets, and the log has causes.
      reject(new AcmeError(`${what} ${failureOf(error, timeoutMs)}${said && `: ${said}`}`));
    },
  );
  await promise;
}

function failureOf({ code, killed, signal }: ExecFileException, timeoutMs: number): string {
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER')
    return `wrote more than ${maxOutputBytes / 1024} KiB and was killed`;
  if (killed === true) return `did not end within ${timeoutMs / 1000} s and was killed`;
  if (code === 'ENOENT') return 'was not found';
  if (typeof code === 'number') return `failed with exit code ${code}`;
  return signal ? `was ended by ${signal}` : `could not be run (${code})`;
}
