import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { env } from 'node:process';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startUpstream } from '../attacks/proxy-harness.ts';
import { createPasswordHub, testPassword } from '../support/password-hub.ts';
import { pathOf, requires } from '../support/requires.ts';
import type { TestHub } from '../support/test-hub.ts';

// Scanners of Debian before a whole hub. HUB_FOREIGN_SECONDS is how long each of them may take.
const seconds = Number(env['HUB_FOREIGN_SECONDS'] ?? 60);
const visitors = ['a stranger', 'a user', 'an administrator'] as const;
const names = { 'a user': 'bob', 'an administrator': 'ada' } as const;

let hub: TestHub;
let directory: string;
beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'hub-scanner-'));
  hub = await createPasswordHub(['ada', 'bob'], {
    Hub: { allow_named_servers: true, load_groups: [{ name: 'team', users: ['bob'] }] },
    Authenticator: { lockout_attempts: 1_000_000 },
  });
});
afterEach(async () => {
  await hub[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

/** Header lines of a visitor's browser. */
async function headersOf(visitor: (typeof visitors)[number]): Promise<string[]> {
  if (visitor === 'a stranger') return [];
  const browser = await hub.logIn(names[visitor], testPassword);
  return [`Cookie: ${browser.cookieHeader(`${hub.url}hub/home`)}`];
}

/** What a program prints until it ends, or its time is over. */
async function run(program: string, args: readonly string[]): Promise<string> {
  const child = spawn(program, args, {
    cwd: directory,
    // None of them asks anybody outside.
    env: { ...env, HOME: directory, XDG_DATA_HOME: directory, https_proxy: 'http://127.0.0.1:9' },
    stdio: ['ignore', 'pipe', 'pipe'],
    // Beyond its own limit, which not each of them keeps.
    timeout: (seconds + 60) * 1_000,
  });
  const [printed] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return printed;
}

/** That nothing failed inside, and the hub answers as before. */
async function expectUnharmed(): Promise<void> {
  expect(hub.logLines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
  expect((await fetch(`${hub.url}hub/health`)).status).toBe(200);
  await hub.logIn('ada', testPassword);
}

/** A proxy for a program that would log out by following each link. */
function passOnAllButLogout(req: IncomingMessage, res: ServerResponse): void {
  const { method = 'GET', headers, url = '' } = req;
  if (url.endsWith('/logout')) {
    res.writeHead(404).end();
    return;
  }
  const asked = request(url, { method, headers }, (answer) => {
    res.writeHead(answer.statusCode ?? 0, answer.headers);
    answer.pipe(res);
  });
  asked.on('error', () => res.destroy());
  req.pipe(asked);
}

const readReport = <Report>(name: string): Report =>
  JSON.parse(readFileSync(join(directory, name), 'utf8')) as Report;

describe.skipIf(!requires('wapiti'))('wapiti', () => {
  test.each(visitors)('as %s finds no hole', async (visitor) => {
    const headers = (await headersOf(visitor)).flatMap((line) => ['-H', line]);
    // Its own way to leave an address out does not work with the Python of Debian 12.
    await using relay = await startUpstream(passOnAllButLogout);
    const limits = [`--max-scan-time=${seconds / 2}`, `--max-attack-time=${seconds / 8}`];
    await run(pathOf('wapiti'), [
      ...['-u', `${hub.url}hub/`, '-s', `${hub.url}hub/home`, '-p', `${relay.url}/`],
      ...['--no-bugreport', '--flush-session', '--store-session', directory, ...headers],
      ...['-m', 'backup,blindsql,crlf,exec,file,htaccess,permanentxss,redirect,sql,xss'],
      ...['-f', 'json', '-o', join(directory, 'report.json'), ...limits],
    ]);
    type Found = Readonly<Record<string, readonly object[]>>;
    const { vulnerabilities, anomalies, infos } = readReport<{
      vulnerabilities: Found;
      anomalies: Found;
      infos: { target: string };
    }>('report.json');
    expect(infos.target).toBe(`${hub.url}hub/`);
    const found = Object.entries({ ...vulnerabilities, ...anomalies });
    expect(Object.fromEntries(found.filter(([, each]) => each.length > 0))).toEqual({});
    await expectUnharmed();
  });
});

describe.skipIf(!requires('sqlmap'))('sqlmap', () => {
  test.each(visitors)('as %s injects nothing', async (visitor) => {
    const headers = (await headersOf(visitor)).flatMap((line) => ['--headers', line]);
    const printed = await run(pathOf('sqlmap'), [
      ...['-u', `${hub.url}hub/admin/activity?target=1&action=login`, '--forms', '--crawl=2'],
      ...['--batch', '--smart', '--threads=4', '--output-dir', directory, '--ignore-code=401'],
      ...['--crawl-exclude=logout', '--timeout=30', ...headers],
    ]);
    expect(printed).toContain('sqlmap');
    expect(printed).not.toMatch(/is vulnerable|identified the following injection/);
    await expectUnharmed();
  });
});

describe.skipIf(!requires('ffuf'))('ffuf', () => {
  const words = '/usr/share/dirb/wordlists/common.txt';
  test.each(visitors)('as %s comes upon nothing that fails', async (visitor) => {
    const headers = (await headersOf(visitor)).flatMap((line) => ['-H', line]);
    for (const [index, place] of ['FUZZ', 'hub/FUZZ', 'hub/api/FUZZ', 'hub/admin/FUZZ'].entries()) {
      const report = `${index}.json`;
      await run(pathOf('ffuf'), [
        ...['-u', hub.url + place, '-w', words, '-t', '8', '-maxtime', String(seconds / 2)],
        ...['-mc', '500-599', '-of', 'json', '-o', join(directory, report), ...headers],
      ]);
      expect(readReport<{ results: object[] }>(report).results).toEqual([]);
    }
    await expectUnharmed();
  });
});

describe.skipIf(!requires('slowhttptest'))('slowhttptest', () => {
  test.each([
    ['slow headers', ['-H']],
    ['slow bodies', ['-B']],
    ['ranges', ['-R']],
    ['slow readers', ['-X', '-k', '3', '-w', '10', '-y', '20', '-n', '5', '-z', '32']],
  ])('with %s leaves the hub to others', async (_, mode) => {
    const length = Math.ceil(seconds / 4);
    const attack = run(pathOf('slowhttptest'), [
      ...mode,
      ...['-c', '400', '-r', '100', '-i', '5', '-l', String(length), '-p', '60'],
      ...['-u', `${hub.url}hub/login`],
    ]);
    let isOver = false;
    void attack.then(() => {
      isOver = true;
    });
    let answered = 0;
    while (!isOver) {
      const answer = await fetch(`${hub.url}hub/health`);
      expect(answer.status).toBe(200);
      await answer.text();
      answered += 1;
    }
    expect(await attack).toContain('service available');
    expect(answered).toBeGreaterThan(0);
    await expectUnharmed();
  });
});
