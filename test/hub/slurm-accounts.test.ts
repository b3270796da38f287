import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeJobScript } from '../../src/spawning/slurm/job-script.ts';
import { createSlurmCommands } from '../../src/spawning/slurm/slurm-commands.ts';
import { createSpawnRequest } from '../contract/spawn-request.ts';
import { pathOf, requires } from '../support/requires.ts';
import { hasSlurm, useSlurm } from '../support/slurm.ts';
import { until } from '../support/test-hub.ts';

const token = 'hub_a-token-of-the-job-of-nobody';
/** Accounts of every Debian: that of the hub, the user, another user of the same node. */
const [hubAccount, owner, other] = ['daemon', 'nobody', 'games'];

describe.runIf(hasSlurm() && requires('sudo', 'ps'))('jobs under the accounts of users', () => {
  const cluster = useSlurm();
  const rules = `/etc/sudoers.d/hub-test-${process.pid}`;
  const home = mkdtempSync(join(tmpdir(), 'hub-slurm-home-'));

  beforeAll(() => {
    chmodSync(home, 0o755);
    mkdirSync(join(home, owner));
    const id = (flag: string) => Number(execFileSync('id', [flag, owner], { encoding: 'utf8' }));
    chownSync(join(home, owner), id('-u'), id('-g'));
    // As docs/how-to/run-on-slurm.md says, for the account of a hub and its one user.
    writeFileSync(
      rules,
      `Defaults:${hubAccount} env_keep += "SLURM_CONF"
${hubAccount} ALL=(${owner}) NOPASSWD: /usr/bin/sbatch, /usr/bin/scancel, /usr/bin/mkdir, /usr/bin/tail
`,
      { mode: 0o440 },
    );
  });
  afterAll(() => {
    rmSync(rules, { force: true });
    rmSync(home, { recursive: true, force: true });
  });

  const commands = () =>
    createSlurmCommands({
      directory: undefined,
      // The tests run as root, which may do everything: they become the account of the hub first.
      sudo: [...become, 'sudo', '-n', '-u', '{username}', '--'],
      environment: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', SLURM_CONF: cluster().configuration },
    });
  const become = ['setpriv', `--reuid=${hubAccount}`, `--regid=${hubAccount}`, '--clear-groups'];
  const outputFile = () => join(home, owner, 'logs', 'job.log');

  /** Submits a job that says that it runs and sleeps; resolves when it does. */
  async function submit(): Promise<string> {
    await commands().makeFolder(join(home, owner, 'logs'), owner);
    const { environmentForUrl } = createSpawnRequest();
    const script = writeJobScript({
      command: ['sleep', '600'],
      environment: { HUB_API_TOKEN: token, HUB_ADDRESS_URL: 'http://127.0.0.1:1/' },
      environmentForUrl,
      workingDirectory: join(home, owner, 'work'),
      modules: [],
      // Nothing takes its address here.
      prologue: 'curl() { true; }; echo running as $(id -un)',
      portRange: [20_000, 29_999],
      addressVariable: 'HUB_ADDRESS_URL',
      tokenVariable: 'HUB_API_TOKEN',
    });
    const args = ['--export=NONE', '--chdir=/', `--output=${outputFile()}`];
    const id = await commands().submit(script, args, {
      account: owner,
      signal: AbortSignal.timeout(30_000),
    });
    await until(async () => {
      const lines = await linesOf(outputFile());
      return lines.includes(`running as ${owner}`) && sleepOf(id) !== undefined;
    }, 'the job runs');
    return id;
  }

  const linesOf = (file: string): Promise<readonly string[]> =>
    commands()
      .readEnd(file, owner)
      .catch(() => []);

  /** Pid of the program of a job. */
  function sleepOf(id: string): string | undefined {
    const pids = execFileSync('sh', ['-c', 'ls /proc | grep "^[0-9]*$"'], { encoding: 'utf8' });
    return pids.split('\n').find((pid) => {
      try {
        const environment = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
        const name = readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
        return name === 'sleep' && environment.includes(`SLURM_JOB_ID=${id}`);
      } catch {
        return false;
      }
    });
  }

  /** What a command says under an account; its refusal, where it is refused. */
  function as(account: string, command: string): string {
    const env = { PATH: '/usr/bin:/bin', SLURM_CONF: cluster().configuration };
    const words = ['-u', account, '--', 'sh', '-c', `${command} 2>&1 || true`];
    return execFileSync(pathOf('runuser'), words, { encoding: 'utf8', env, cwd: '/' });
  }

  test('are submitted, read and cancelled by sudo, which allows nothing else', async () => {
    const id = await submit();
    expect((await cluster().run('squeue', '--noheader', '--format=%i %u')).trim()).toBe(
      `${id} ${owner}`,
    );
    await commands().cancel(id, { account: owner, kill: false });
    await until(
      async () => (await cluster().run('squeue', '--noheader')).trim() === '',
      'the job has ended',
    );
    const signal = AbortSignal.timeout(30_000);
    await expect(commands().submit('', [], { account: other, signal })).rejects.toThrow(
      'a password is required',
    );
  });

  test('keep their token from other accounts of the node, and from none of their own', async () => {
    const id = await submit();
    const environment = `/proc/${sleepOf(id)}/environ`;
    const script = `scontrol write batch_script ${id} -`;
    const spool = `find ${join(cluster().configuration, '..', 'spool')} -name slurm_script -exec cat {} +`;
    try {
      for (const way of [
        `cat ${environment}`,
        script,
        spool,
        `scontrol -dd show job ${id}`,
        'ps axeww',
      ]) {
        expect(as(other, way), way).not.toContain(token);
      }
      expect(readFileSync(environment, 'latin1')).toContain(token);
      expect(as(owner, `cat ${environment}`)).toContain(token);
      expect(as(owner, script)).toContain(token);
    } finally {
      await commands().cancel(id, { account: owner, kill: true });
    }
  });
});
