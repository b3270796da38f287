import type { Command } from 'commander';
import type { CommandOperationId } from '../../operations/operations.ts';
import type { PerformCommand } from '../../operations/perform-command.ts';
import { HubError } from '../../platform/errors.ts';
import type { CliIo } from './cli-io.ts';
import { loadFor } from './with-config.ts';

const bound = new WeakMap<Command, readonly CommandOperationId[]>();
const performed = new WeakSet<Command>();

/**
 * Binds a command to operations, which alone decide what may be done and what is recorded. They are performed by the
 * running hub, else in the process of the command; with `--url` by a remote hub.
 */
export function performing<Ids extends CommandOperationId, Args extends readonly unknown[]>(
  command: Command,
  io: CliIo,
  ids: readonly Ids[],
  work: (perform: PerformCommand<Ids>, ...args: Args) => Promise<void>,
): void {
  bound.set(command, ids);
  performed.add(command);
  command.action(async (...args: unknown[]) => {
    const hubUrl = hubUrlOf(command);
    if (hubUrl !== undefined) {
      const { performRemotely } = await import('./remote-hub.ts');
      return work(performRemotely(hubUrl, io), ...(args as unknown as Args));
    }
    const checked = await loadFor(command, io);
    const { openEntrance } = await import('./command-entrance.ts');
    await using entrance = await openEntrance(checked, io);
    await work(entrance.perform, ...(args as unknown as Args));
  });
}

/** The remote hub that a command is for. */
export function hubUrlOf(command: Command): string | undefined {
  return command.optsWithGlobals<{ url?: string }>().url;
}

/** Says which operations a command asks the running hub for, beside what it does by itself. */
export function asking(command: Command, ids: readonly CommandOperationId[]): Command {
  bound.set(command, ids);
  return command;
}

/** Throws `bad_request` for a command with `--url` that does more than perform operations, and has none of its own. */
export function requireLocal(command: Command): void {
  if (hubUrlOf(command) === undefined || performed.has(command)) return;
  if (command.options.some(({ long }) => long === '--url')) return;
  throw new HubError('bad_request', `hub ${command.name()} takes no --url: run it beside the hub.`);
}

/** The operations to which a command is bound. */
export function operationsOf(command: Command): readonly CommandOperationId[] {
  return bound.get(command) ?? [];
}
