import { existsSync } from 'node:fs';
import { chmod, chown, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { env } from 'node:process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runsAsRoot } from '../../src/spawning/processes/system-user.ts';
import { connectUnix } from '../../src/spawning/processes/unix-connection.ts';
import { actAs, nobody, runHostile } from '../support/hostile-account.ts';
import { isReady, useLocalSpawners } from '../support/local-spawners.ts';
import { sendRaw } from '../support/raw-request.ts';
import { requires } from '../support/requires.ts';
import {
  createServerHub,
  createUsers,
  serverPath,
  startUntilReady,
  stopServer,
  untilServer,
} from '../support/server-hub.ts';
import { type SharedPrograms, sharePrograms } from '../support/shared-programs.ts';

const rounds = 40;

/** What is asked of the user's folder stands in a place that root alone may write to. */
describe.runIf(runsAsRoot() && requires('perl'))('a hub that is root', () => {
  const { lines, createSpawner, start, stop, seen } = useLocalSpawners();
  let programs: SharedPrograms;
  /** A folder of root, which no other account may enter. */
  let closed: string;
  /** A folder of the hostile user. */
  let own: string;

  beforeEach(async () => {
    programs = await sharePrograms('web-server.cjs');
    closed = await mkdtemp(join(tmpdir(), 'hub-closed-'));
    await writeFile(join(closed, 'precious'), 'precious');
    own = await mkdtemp(join(tmpdir(), 'hub-own-'));
    await chown(own, nobody.userId, nobody.groupId);
  });
  afterEach(async () => {
    await programs[Symbol.asyncDispose]();
    await rm(closed, { recursive: true });
    await rm(own, { recursive: true, force: true });
  });

  const web = () => programs.app('web-server.cjs');
  const socketOf = ({ url }: { url: string }) =>
    decodeURIComponent(url.replace('http+unix://', ''));

  describe('removes nothing but the folder of a socket', () => {
    test('though it is full of folders that turn into links meanwhile', async () => {
      const spawner = createSpawner();
      const server = await start(spawner, { command: web(), systemUser: 'nobody', socket: true });
      await isReady(server);
      const folder = dirname(socketOf(server));
      const racer = `
        my ($folder, $victim) = @ARGV;
        for (1 .. 2000) { mkdir "$folder/d$_"; open my $f, '>', "$folder/d$_/x"; symlink $victim, "$folder/l$_" }
        print "ready\\n";
        for (;;) { for (1 .. 2000) { exchange("$folder/d$_", "$folder/l$_") } }`;
      await using _racer = await runHostile(nobody, racer, folder, closed);
      await stop(spawner, server);
      expect(await readdir(closed)).toEqual(['precious']);
      expect(await server.exited).toMatchObject({ signal: 'SIGTERM' });
    });

    test('and leaves one that its user closed, and says where', async () => {
      const warnings: unknown[] = [];
      const log = {
        debug() {},
        info() {},
        error() {},
        warn: (fields: unknown, message: string) => warnings.push({ message, ...Object(fields) }),
      };
      const spawner = createSpawner(undefined, { log });
      const server = await start(spawner, { command: web(), systemUser: 'nobody', socket: true });
      await isReady(server);
      const folder = dirname(socketOf(server));
      actAs(nobody, 'mkdir -p "$1/d/e"; : >"$1/d/f"; chmod 0 "$1/d"', folder);
      await stop(spawner, server);
      expect(await server.exited).toMatchObject({ signal: 'SIGTERM' });
      expect(existsSync(join(folder, 'd'))).toBe(true);
      expect(warnings).toContainEqual(
        expect.objectContaining({ message: 'socket folder left behind', folder: dirname(folder) }),
      );
      await removeSocketFolder(folder);
    });
  });

  describe('connects to the socket of the server alone', () => {
    let victim: Server;
    let victimSocket: string;

    beforeEach(async () => {
      victimSocket = join(closed, 'server.sock');
      victim = createServer((_request, response) => response.end('PRIVATE'));
      victim.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 418 PRIVATE\r\n\r\n'));
      await new Promise<void>((resolve) => victim.listen(victimSocket, resolve));
    });
    afterEach(() => {
      victim.closeAllConnections();
      victim.close();
    });

    test.each([
      ['a link', 'ln -sfn "$2/server.sock" "$1/server.sock"'],
      ['a link in the place of its folder', 'mv "$1" "$1.old"; ln -s "$2" "$1"'],
      ['a hard link', 'rm "$1/server.sock"; ln "$2/server.sock" "$1/server.sock"'],
      ['a pipe', 'rm "$1/server.sock"; mkfifo "$1/server.sock"'],
      ['a folder', 'rm "$1/server.sock"; mkdir "$1/server.sock"'],
    ])('and not to what its user put in its place: %s', async (_what, script) => {
      await using hub = await createServerHub({
        Spawner: {
          cmd: web(),
          system_user: '{username}',
          allowed_system_users: ['nobody'],
          socket: true,
        },
      });
      await chmod(hub.directory, 0o755);
      await createUsers(hub, 'nobody');
      await startUntilReady(hub, serverPath('nobody'));
      const path = serverPath('nobody');
      const { state } = await untilServer(hub, path, ({ ready }) => ready, 'it is ready');
      const folder = dirname(socketOf({ url: String(state?.['url']) }));
      try {
        actAs(nobody, script, folder, closed);
      } catch {
        // The system has refused it.
      }
      const browser = await hub.logIn('nobody');
      const address = `${hub.url}user/nobody/x`;
      const page = await browser.open(address);
      expect(page.url).toBe(address);
      expect(page.body).not.toContain('PRIVATE');
      const { host, origin } = new URL(hub.url);
      const handshake = await sendRaw(
        hub.url,
        `GET /user/nobody/x HTTP/1.1\r\nHost: ${host}\r\nOrigin: ${origin}\r\nCookie: ${browser.cookieHeader(address)}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
      );
      expect(handshake.text).not.toMatch(/^HTTP\/1\.1 418|PRIVATE/);
      expect((await stopServer(hub, path)).status).toBeLessThan(300);
      await untilServer(hub, path, ({ stopped }) => stopped, 'it stops');
      expect(existsSync(victimSocket)).toBe(true);
      await removeSocketFolder(folder);
    });

    test('however fast the two change places', async () => {
      const spawner = createSpawner();
      const server = await start(spawner, { command: web(), systemUser: 'nobody', socket: true });
      await isReady(server);
      const socket = socketOf(server);
      const racer = `
        my ($folder, $victim) = @ARGV;
        symlink $victim, "$folder/link"; print "ready\\n";
        for (;;) { exchange("$folder/server.sock", "$folder/link") }`;
      const got = { own: 0, refused: 0 };
      await using _racer = await runHostile(nobody, racer, dirname(socket), victimSocket);
      while (got.own < rounds || got.refused < rounds) {
        const answer = await ask(socket);
        expect(answer).not.toContain('PRIVATE');
        got[answer === '' ? 'refused' : 'own'] += 1;
      }
    });
  });

  describe('makes the home of a user', () => {
    test('without following a link of that user', async () => {
      actAs(nobody, 'ln -s "$2" "$1/lab"', own, closed);
      await chmod(closed, 0o755);
      const workingDirectory = join(own, 'lab', 'work');
      await expect(
        start(createSpawner(), { command: web(), systemUser: 'nobody', workingDirectory }),
      ).rejects.toThrow(/directory .* cannot be made/);
      expect(await readdir(closed)).toEqual(['precious']);
    });

    test('in a folder of that user, as that user', async () => {
      const workingDirectory = join(own, 'lab', 'work');
      const command = ['sh', '-c', 'echo "in $(pwd) as $(id -un)"; sleep 60'];
      await start(createSpawner(), { command, systemUser: 'nobody', workingDirectory });
      expect(await seen('in /')).toBe(`in ${workingDirectory} as nobody`);
      expect(await stat(join(own, 'lab'))).toMatchObject({ uid: nobody.userId });
    });

    test('and gives no folder away that a link leads to meanwhile', async () => {
      await chmod(closed, 0o711);
      await mkdir(join(closed, 'work'), { mode: 0o700 });
      const racer = `
        my ($folder, $victim) = @ARGV;
        mkdir "$folder/lab"; symlink $victim, "$folder/link"; print "ready\\n";
        for (;;) { exchange("$folder/lab", "$folder/link"); rmdir "$folder/lab/work" }`;
      await using _racer = await runHostile(nobody, racer, own, closed);
      const spawner = createSpawner(1);
      for (let round = 0; round < 15; round += 1) {
        await start(spawner, {
          command: ['true'],
          systemUser: 'nobody',
          workingDirectory: join(own, 'lab', 'work'),
          serverId: `server-${round}`,
        }).catch(() => undefined);
      }
      expect(await stat(join(closed, 'work'))).toMatchObject({ uid: 0 });
      expect(await readdir(closed)).toEqual(['precious', 'work']);
    });

    test('and enters none that is closed to that user', async () => {
      await mkdir(join(closed, 'open'), { mode: 0o755 });
      await writeFile(join(closed, 'open', 'secret'), 'PRIVATE');
      actAs(nobody, 'ln -s "$2/open" "$1/work"', own, closed);
      const command = ['sh', '-c', 'cat secret; echo over; sleep 60'];
      const workingDirectory = join(own, 'work');
      const starting = start(createSpawner(), { command, systemUser: 'nobody', workingDirectory });
      await starting.then(
        ({ exited }) => Promise.race([exited, seen('over')]),
        () => 'refused',
      );
      expect(lines.join()).not.toContain('PRIVATE');
    });
  });

  test('is not held up by a pipe in the place of a program', async () => {
    actAs(nobody, 'mkfifo -m 755 "$1/program"', own);
    const command = [join(own, 'program')];
    const server = await start(createSpawner(), { command, systemUser: 'nobody' });
    expect(await server.exited).toMatchObject({ code: 126 });
  });

  test('writes no output where its user could put a link', async () => {
    const spawner = createSpawner(undefined, { logDirectory: join(own, 'logs') });
    await expect(start(spawner, { command: web(), systemUser: 'nobody' })).rejects.toThrow(
      'The output of the server has no safe place.',
    );
    expect(await readdir(own)).toEqual([]);
  });

  test('obeys no variable of a server before it has the account of that server', async () => {
    await chmod(own, 0o777);
    const environment = {
      PATH: env['PATH'] ?? '',
      LD_DEBUG: 'files',
      LD_DEBUG_OUTPUT: join(own, 'trace'),
      LD_LIBRARY_PATH: join(own, 'lib'),
      QUOTED: `it's "$HOME"\n\\ \``,
    };
    const command = ['sh', '-c', 'printf "%s\\n" "<$QUOTED>" "$LD_LIBRARY_PATH"; sleep 60'];
    await start(createSpawner(), { command, systemUser: 'nobody', environment });
    await seen(join(own, 'lib'));
    expect(lines.join('\n')).toContain(`<${environment.QUOTED}>`);
    const traces = await readdir(own);
    expect(traces).not.toEqual([]);
    for (const trace of traces) expect((await stat(join(own, trace))).uid).toBe(nobody.userId);
  });
});

/** Removes what a hub has left: the folder of a socket, with the one it is in. */
async function removeSocketFolder(inner: string): Promise<void> {
  const folder = /^.*\/(?:hub-)?srv-\w{6}(?=\/s$)/.exec(inner)?.[0];
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
}

/** Asks what answers at a socket; empty when the connection is refused. */
function ask(socket: string): Promise<string> {
  return new Promise((resolve) => {
    const connection = connectUnix(socket);
    let answer = '';
    connection.on('data', (chunk) => {
      answer += String(chunk);
    });
    connection.on('error', () => undefined);
    connection.on('close', () => resolve(answer));
    connection.write('GET /x HTTP/1.0\r\n\r\n');
  });
}
