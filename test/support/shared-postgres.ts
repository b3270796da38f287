import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { TestProject } from 'vitest/node';
import { type PostgresCluster, type PostgresLogin, startPostgres } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Socket at which test files ask for the PostgreSQL that they share. */
    readonly postgresSocket: string;
  }
}

let cluster: Promise<PostgresCluster> | undefined;
let server: Server | undefined;
let directory: string | undefined;

/** For all test files of a run: one PostgreSQL, which starts when the first of them asks for it. */
export async function setup(project: TestProject): Promise<void> {
  directory = await mkdtemp(join(tmpdir(), 'hub-shared-postgres-'));
  const path = join(directory, 'socket');
  server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    cluster ??= startPostgres();
    cluster.then(
      ({ host, port, user, password }) =>
        socket.end(JSON.stringify({ login: { host, port, user, password } })),
      (thrown: unknown) => socket.end(JSON.stringify({ problem: String(thrown) })),
    );
  }).listen(path);
  await once(server, 'listening');
  project.provide('postgresSocket', path);
}

export async function teardown(): Promise<void> {
  server?.close();
  await (await cluster?.catch(() => undefined))?.[Symbol.asyncDispose]();
  if (directory !== undefined) await rm(directory, { recursive: true, force: true });
}

/** Asks for the shared PostgreSQL in a test file; starts it if need be. */
export async function sharedPostgres(socket: string): Promise<PostgresLogin> {
  const answer = JSON.parse(await text(connect(socket))) as {
    readonly login?: PostgresLogin;
    readonly problem?: string;
  };
  if (answer.login === undefined) throw new Error(answer.problem);
  return answer.login;
}
