import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { getuid, kill } from 'node:process';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { pamHelper } from './pam-helper.ts';

const answerSchema = z.discriminatedUnion('outcome', [
  z.object({ outcome: z.literal('ok'), name: z.string(), groups: z.array(z.string()) }),
  z.object({
    outcome: z.literal('refused'),
    step: z.enum(['authenticate', 'account']),
    reason: z.string(),
    /** What PAM wants to pass before the person learns of it (pam_fail_delay(3)). */
    waitSeconds: z.number().default(0),
  }),
  z.object({ outcome: z.literal('failed'), reason: z.string() }),
]);

type PamAnswer = Exclude<z.output<typeof answerSchema>, { outcome: 'failed' }>;

export interface PamQuestion {
  readonly service: string;
  readonly name: string;
  readonly password: string;
  readonly checkAccount: boolean;
  readonly wantsGroups: boolean;
}

const python = '/usr/bin/python3';
const setpriv = '/usr/bin/setpriv';
/** What the helper has at the end of its time to end what was started. */
const endingMs = 5_000;

/**
 * Asks PAM in a process of its own, which ends with the answer: modules of PAM are foreign code, which may block, crash or
 * change what their process is. It has an empty environment, no file of the hub, and of root's rights one: it reads the
 * hashes of passwords. The question goes through a pipe. Without one it is tried whether PAM is there. Rejects when PAM does
 * not say.
 */
export async function askPam(
  question: PamQuestion | undefined,
  { timeoutMs }: { readonly timeoutMs: number },
): Promise<PamAnswer> {
  const [program = '', ...rest] = [...withoutRights(), python, '-I', '-S', '-c', pamHelper];
  const child = spawn(program, rest, {
    cwd: '/',
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C.UTF-8' },
    stdio: ['pipe', 'pipe', 'ignore'],
    detached: true,
  });
  // It ends itself, and what modules started, in time; unless one of them stopped it.
  const timer = setTimeout(() => {
    endGroup(child.pid);
    child.stdout.destroy();
  }, timeoutMs + endingMs);
  try {
    const ended = new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', () => resolve());
    });
    // It may end before it has read.
    child.stdin.on('error', () => undefined);
    child.stdin.end(JSON.stringify({ question, timeoutSeconds: timeoutMs / 1000 }));
    const said = await Promise.all([text(child.stdout), ended]).then(
      ([answer]) => answer,
      (error: unknown) => {
        if (child.stdout.errored === null && child.stdout.destroyed) return '';
        throw error;
      },
    );
    const answer = answerSchema.safeParse(parse(said));
    if (answer.data === undefined || answer.data.outcome === 'failed')
      throw new Error(answer.data?.reason ?? `${python} could not ask PAM: is python3 installed?`);
    return answer.data;
  } finally {
    clearTimeout(timer);
    endGroup(child.pid);
  }
}

/**
 * Words before the command, for a hub that runs as root. Members of `shadow` may read the hashes of passwords, which is all
 * that `pam_unix` needs; where there is no such group, root reads them. A hub of another account has no more to give up.
 */
function withoutRights(): string[] {
  if (getuid?.() !== 0) return [];
  if (!existsSync(setpriv)) throw new Error(`${setpriv} (util-linux) is missing`);
  const hasGroup = /^shadow:/m.test(readFileSync('/etc/group', 'utf8'));
  const rights = hasGroup
    ? ['--reuid=nobody', '--regid=shadow', '--clear-groups', '--bounding-set=-all']
    : ['--bounding-set=-all,+audit_write,+dac_read_search'];
  return [setpriv, ...rights, '--inh-caps=-all', '--no-new-privs', '--'];
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
