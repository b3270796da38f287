import { chmod, chown, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { kill } from 'node:process';
import { describe, expect, test } from 'vitest';
import { pidOf, silentLog, useLocalSpawners } from '../../../test/support/local-spawners.ts';
import { pathOf, requires } from '../../../test/support/requires.ts';
import { isAlive } from '../../../test/support/server-hub.ts';
import { until } from '../../../test/support/test-hub.ts';
import { createWarmPool, type WarmPool } from '../processes/warm-pool.ts';

const { directory, createSpawner, start, seen, lines } = useLocalSpawners();

/** Says all that a server has, and what it can do, and listens. */
const script = `#!/usr/bin/python3
import http.server, json, os, sys
said = {"pid": os.getpid(), "argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ), "isWarm": "colorsys" in sys.modules}
said["ids"] = [*os.getresuid(), *os.getresgid(), *os.getgroups()]
status = open("/proc/self/status").read()
said["caps"] = [line.split()[1] for line in status.splitlines() if line.startswith(("CapInh", "CapPrm", "CapEff", "CapAmb"))]
said["fds"] = sorted(int(fd) for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd))
said["known"] = [name for name in ("given", "account", "line") if name in globals()]
print("SAID " + json.dumps(said), flush=True)
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), http.server.BaseHTTPRequestHandler).serve_forever()
`;

describe.runIf(requires('python3'))('a server that was started ahead', () => {
  const warnings: unknown[] = [];
  const waits: number[] = [];
  const log = {
    ...silentLog,
    debug: (facts: object) => void waits.push((facts as { pid: number }).pid),
    warn: (facts: object) => void warnings.push(facts),
  };

  async function openPool(
    modules = ['colorsys'],
    count = 1,
    claimPatienceMs = 60_000,
    python = pathOf('python3'),
  ) {
    const program = join(directory(), 'app.py');
    await writeFile(program, script);
    await chmod(program, 0o755);
    warnings.length = 0;
    waits.length = 0;
    const pool = createWarmPool({
      programs: [{ program, python, modules, count }],
      log,
      refillDelayMs: 0,
      claimPatienceMs,
    });
    const isFull = (pids: readonly number[] = []) =>
      until(() => waits.filter((pid) => !pids.includes(pid)).length >= count, 'the pool is full');
    return { program, pool, isFull };
  }

  async function saidBy(given: { pool?: WarmPool; program: string }, changed = {}) {
    lines.length = 0;
    const spawner = createSpawner(200, { pool: given.pool, log });
    const server = await start(spawner, { command: [given.program, '{port}'], ...changed });
    const said = JSON.parse((await seen('SAID')).slice(5));
    expect(said.pid).toBe(pidOf(server));
    return { ...said, spawner, server };
  }

  test('is that of its user alone, as a new one would be', async () => {
    const given = await openPool();
    using _ = given.pool;
    await given.isFull();
    const environment = { PATH: '/usr/bin:/bin', USER: 'ann', SECRET: 'of ann' };
    const [pid] = waits;
    const warm = await saidBy(given, { environment });
    expect(warm).toMatchObject({ pid, isWarm: true });
    const family = warm.server.state.tag;
    expect(warm.env.HUB_PROCESS_TAG).toBe(family);
    const environ = await readFile(`/proc/${warm.pid}/environ`, 'utf8');
    expect(environ).toContain(`HUB_PROCESS_TAG=${family}\0`);
    expect(environ).not.toContain('of ann');
    await given.isFull([warm.pid]);
    const { program } = given;
    const cold = await saidBy({ program }, { environment });
    const common = ({
      env: { HUB_PROCESS_TAG: _tag, LC_CTYPE: _locale, HUB_SERVICE_URL: _url, ...env },
      cwd,
      ids,
      caps,
      fds,
    }: typeof warm) => ({ env, cwd, ids, caps, fds });
    expect(common(warm)).toEqual(common(cold));
    expect(warm.known).toEqual([]);

    // A hub that knows nothing of the first one has ended it, by its tag, before it started another.
    expect(isAlive(warm.pid)).toBe(false);
    const ben = await saidBy(given, { environment: { PATH: '/usr/bin:/bin', USER: 'ben' } });
    expect(ben).toMatchObject({ isWarm: true, env: { USER: 'ben' } });
    expect(ben.pid).not.toBe(warm.pid);
    expect(JSON.stringify(ben.env)).not.toContain('of ann');
  });

  test.runIf(requires('root'))(
    'runs under the account of its user and cannot leave it',
    async () => {
      const given = await openPool();
      using _ = given.pool;
      await given.isFull();
      await chown(directory(), 65_534, 65_534);
      const warm = await saidBy(given, {
        systemUser: 'nobody',
        environment: { PATH: '/usr/bin:/bin' },
      });
      expect(warm.isWarm).toBe(true);
      const { program } = given;
      const cold = await saidBy(
        { program },
        { systemUser: 'nobody', environment: { PATH: '/usr/bin:/bin' } },
      );
      expect(new Set(warm.ids)).toEqual(new Set([65_534]));
      for (const key of ['ids', 'caps', 'fds', 'cwd'])
        expect([key, warm[key]]).toEqual([key, cold[key]]);
    },
  );

  test('starts as always when the one that waits fails as it is claimed', async () => {
    const given = await openPool(['colorsys'], 1, 200);
    using _ = given.pool;
    await given.isFull();
    const [pid = 0] = waits;
    // It is there and does nothing.
    kill(pid, 'SIGSTOP');
    const cold = await saidBy(given);
    expect(cold).toMatchObject({ isWarm: false });
    expect(cold.pid).not.toBe(pid);
    expect(warnings).toHaveLength(1);
    await until(() => !isAlive(pid), 'it is ended');
  });

  test('is one of none where its modules cannot be imported', async () => {
    const given = await openPool(['no_such_module']);
    using _ = given.pool;
    await until(() => warnings.length > 0, 'the pool says why');
    expect(warnings[0]).toMatchObject({ reason: expect.stringContaining('no_such_module') });
    expect(waits).toEqual([]);
  });

  test('has its last words logged as a line of output: bounded, and without control characters', async () => {
    const python = join(directory(), 'python');
    // In one piece, as the program of a warm process does.
    const words = `import os; os.write(3, b"\\x1b[31m" + b"0" * 9998 + b"1\\n")`;
    await writeFile(python, `#!${pathOf('python3')}\n${words}\n`);
    await chmod(python, 0o755);
    const given = await openPool([], 1, 60_000, python);
    using _ = given.pool;
    await until(() => warnings.length > 0, 'the pool says why');
    expect(warnings[0]).toMatchObject({ reason: expect.stringMatching(/^0{4000,4096}…$/) });
  });

  test('ends with the pool', async () => {
    const given = await openPool(['colorsys'], 2);
    await given.isFull();
    given.pool[Symbol.dispose]();
    await until(() => !waits.some(isAlive), 'they are gone');
  });
});
