import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { identifyProcess } from '../platform/process-table/process-table.ts';

describe('the program hub-singleuser', () => {
  const main = join(import.meta.dirname, '..', 'singleuser-main.ts');

  function start(command: readonly string[]): ChildProcess {
    return spawn(process.execPath, [main, '--kill-after', '0.2', '--', ...command], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        HUB_API_TOKEN: 'the-token-of-the-server',
        HUB_CLIENT_ID: 'hub-user-alice',
        HUB_SERVICE_PREFIX: '/user/alice/',
        HUB_SERVICE_URL: 'http://127.0.0.1:0/',
        HUB_OAUTH_SCOPES: '[]',
      },
    });
  }

  async function exitOf(program: ChildProcess): Promise<number | null> {
    const [code] = (await once(program, 'exit')) as [number | null];
    return code;
  }

  test('exits with the exit code of the app', async () => {
    expect(await exitOf(start([process.execPath, '--eval', 'process.exit(7)']))).toBe(7);
  });

  test('exits with 127 when there is no such app', async () => {
    expect(await exitOf(start(['/no/such/app']))).toBe(127);
  });

  test('passes a signal on that comes as soon as the app runs', async () => {
    const script = `trap 'exit 5' TERM; kill -TERM $PPID; while :; do sleep 0.05; done`;
    for (let attempt = 0; attempt < 3; attempt += 1) {
      expect(await exitOf(start(['sh', '-c', script]))).toBe(5);
    }
  });

  test('passes a signal on and lets the app end in its own way', async () => {
    const source = `process.on('SIGTERM', () => process.exit(5)); setInterval(() => {}, 1e6); console.log('up')`;
    const program = start([process.execPath, '--eval', source]);
    await once(program.stdout as NodeJS.ReadableStream, 'data');
    program.kill('SIGTERM');
    expect(await exitOf(program)).toBe(5);
  });

  test('kills an app that does not end, with everything it started', async () => {
    const stubborn = `process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6);`;
    const source = `${stubborn}
      const child = require('node:child_process').spawn(process.execPath, ['--eval', ${JSON.stringify(`${stubborn} console.log('up')`)}]);
      child.stdout.once('data', () => console.log(child.pid));`;
    const program = start([process.execPath, '--eval', source]);
    const [line] = (await once(program.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
    program.kill('SIGTERM');
    expect(await exitOf(program)).toBe(128 + 9);
    const grandchild = Number(line.toString());
    expect(identifyProcess(grandchild)).toBeUndefined();
  });

  test('says which variable is missing, and exits with 2', async () => {
    const program = spawn(process.execPath, [main, '--', 'true'], { env: {}, stdio: 'pipe' });
    const [output, code] = await Promise.all([text(program.stderr), exitOf(program)]);
    expect(output).toContain('HUB_API_TOKEN');
    expect(code).toBe(2);
  });
});
