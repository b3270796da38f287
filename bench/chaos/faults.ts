import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as pause } from 'node:timers/promises';
import type { PostgresCluster } from '../../test/support/postgres.ts';
import { descendantsOf, sendSignal } from './processes.ts';
import type { Random } from './random.ts';
import type { TormentedHub } from './tormented-hub.ts';
import type { Traffic } from './traffic.ts';

/** Something that happens and, when it resolves, is over. */
export interface Fault {
  readonly name: string;
  /** Whether it ends the process of the hub. */
  readonly endsHub?: boolean;
  happen(): Promise<void>;
}

export interface FaultDeps {
  readonly hub: TormentedHub;
  readonly traffic: Traffic;
  /** Undefined where the hub has an SQLite file. */
  readonly postgres: PostgresCluster | undefined;
  readonly random: Random;
  /** What went otherwise than it must. */
  readonly blame: (what: string) => void;
}

/** What happens to the machine and to the hub itself, one after the other. */
export function machineFaults(deps: FaultDeps): readonly Fault[] {
  const { hub, random, blame } = deps;
  const { configFile } = hub.folder;

  async function reloadWith(change: (text: string) => string): Promise<void> {
    const text = await readFile(configFile, 'utf8');
    await writeFile(configFile, change(text));
    sendSignal(hub.pid, 'SIGHUP');
    await pause(random.between(200, 1_000));
    await writeFile(configFile, text);
    sendSignal(hub.pid, 'SIGHUP');
  }

  return [
    {
      name: 'hub killed',
      endsHub: true,
      async happen() {
        await hub.end('SIGKILL');
        await hub.start();
      },
    },
    {
      name: 'hub stopped and started',
      endsHub: true,
      async happen() {
        const code = await hub.end('SIGTERM');
        if (code !== 0) blame(`the hub ended with ${code} on SIGTERM`);
        await hub.start();
      },
    },
    {
      name: 'signal during the start',
      endsHub: true,
      async happen() {
        await hub.end('SIGKILL');
        hub.begin();
        // Node.js itself takes a moment before any program can have its say.
        await pause(random.between(400, 2_500));
        const signal = random.pick(['SIGHUP', 'SIGTERM', 'SIGINT'] as const);
        if (signal === 'SIGHUP') {
          sendSignal(hub.pid, signal);
          await hub.untilReady();
          return;
        }
        await hub.end(signal);
        await hub.start();
      },
    },
    {
      name: 'hub frozen',
      async happen() {
        sendSignal(hub.pid, 'SIGSTOP');
        await pause(random.between(300, 3_000));
        sendSignal(hub.pid, 'SIGCONT');
      },
    },
    {
      name: 'started twice',
      async happen() {
        const { code, text } = await hub.startAgain();
        if (code !== 1 || !text.includes('already'))
          blame(`a second start ended with ${code}: ${text}`);
      },
    },
    {
      name: 'reloaded',
      happen: () =>
        reloadWith((text) => text.replace('"Hub":{', '"Hub":{"announcement":"Something changes",')),
    },
    { name: 'reloaded with a mistake', happen: () => reloadWith((text) => text.slice(0, -2)) },
    {
      name: 'clock set forward, then back',
      async happen() {
        await hub.clock.set(3_600);
        await pause(random.between(500, 3_000));
        await hub.clock.set(0);
      },
    },
    {
      name: 'clock set back, then forward',
      async happen() {
        await hub.clock.set(-3_600);
        await pause(random.between(500, 3_000));
        await hub.clock.set(0);
      },
    },
    ...(deps.hub.logDisk === undefined ? [] : [diskFault(deps, deps.hub.logDisk)]),
    ...(deps.postgres === undefined ? sqliteFaults(deps) : postgresFaults(deps, deps.postgres)),
  ];
}

function diskFault({ random }: FaultDeps, folder: string): Fault {
  return {
    name: 'disk of the log full',
    async happen() {
      const filler = join(folder, 'filler');
      // Writes until there is no room: that is what is wanted.
      await writeFile(filler, Buffer.alloc(64 * 2 ** 20)).catch(() => {});
      await pause(random.between(500, 3_000));
      await rm(filler, { force: true });
    },
  };
}

function sqliteFaults({ hub, random }: FaultDeps): readonly Fault[] {
  const open = () =>
    new DatabaseSync(join(hub.folder.directory, 'hub.sqlite'), { timeout: 20_000 });
  return [
    {
      name: 'SQLite locked by another program',
      async happen() {
        using other = open();
        other.exec('begin immediate');
        await pause(random.between(500, 7_000));
        other.exec('commit');
      },
    },
    {
      name: 'SQLite read for long',
      async happen() {
        using other = open();
        other.exec('begin');
        other.prepare('select count(*) from users').get();
        await pause(random.between(500, 4_000));
        other.exec('commit');
      },
    },
  ];
}

function postgresFaults({ random }: FaultDeps, postgres: PostgresCluster): readonly Fault[] {
  return [
    {
      name: 'PostgreSQL ended and started',
      async happen() {
        await postgres.stop();
        await pause(random.between(100, 4_000));
        await postgres.start();
      },
    },
    {
      name: 'PostgreSQL frozen',
      async happen() {
        const pids = [postgres.pid, ...descendantsOf(postgres.pid)];
        for (const pid of pids) sendSignal(pid, 'SIGSTOP');
        await pause(random.between(500, 6_000));
        for (const pid of pids) sendSignal(pid, 'SIGCONT');
      },
    },
    {
      name: 'connection to PostgreSQL ended',
      async happen() {
        // What PostgreSQL does with a connection that it is told to end.
        for (const pid of descendantsOf(postgres.pid)) {
          if (random.isTrue(0.5) && (await isConnection(pid))) sendSignal(pid, 'SIGTERM');
        }
      },
    },
  ];
}

/** Whether a process of PostgreSQL serves a client; the others are its own. */
async function isConnection(pid: number): Promise<boolean> {
  const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return /postgres: hub \S+ 127\.0\.0\.1/.test(command.replaceAll('\0', ' '));
}

/** What happens to the programs that the hub runs, at the same time. */
export function childFaults({ traffic, hub, random }: FaultDeps): readonly Fault[] {
  const { api, serverUsers } = traffic;

  async function pidOfService(): Promise<number | undefined> {
    const { pid } = (await (await api('/services/app')).json()) as { pid?: number | null };
    return pid ?? undefined;
  }

  async function pidOfServer(): Promise<number | undefined> {
    const answer = await api(`/users/${random.pick(serverUsers)}/server`);
    const { ready, state } = (await answer.json()) as {
      ready?: boolean;
      state?: { pid?: number };
    };
    return ready === true ? state?.pid : undefined;
  }

  const killed = (name: string, find: () => Promise<number | undefined>): Fault => ({
    name: `${name} killed`,
    async happen() {
      const pid = await find();
      if (pid !== undefined) sendSignal(pid, 'SIGKILL');
    },
  });
  const frozen = (name: string, find: () => Promise<number | undefined>): Fault => ({
    name: `${name} frozen`,
    async happen() {
      const pid = await find();
      if (pid === undefined) return;
      sendSignal(pid, 'SIGSTOP');
      await pause(random.between(200, 3_000));
      sendSignal(pid, 'SIGCONT');
    },
  });
  return [
    killed('service', pidOfService),
    frozen('service', pidOfService),
    killed('server', pidOfServer),
    killed('server', pidOfServer),
    frozen('server', pidOfServer),
    {
      name: 'flood of output',
      async happen() {
        await (await traffic.ask(`${hub.folder.url}services/app/flood`)).text();
      },
    },
  ];
}
