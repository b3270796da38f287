import type { Command } from 'commander';
import type { CommandOperationId } from '../../operations/operations.ts';
import type { PerformCommand } from '../../operations/perform-command.ts';
import type { CliIo } from './cli-io.ts';
import { loadFor } from './with-config.ts';

const bound = new WeakMap<Command, readonly CommandOperationId[]>();

/**
 * Binds a command to operations, which alone decide what may be done and what is recorded. They are performed by the
 * running hub, else in the process of the command.
 */
export function performing<Ids extends CommandOperationId, Args extends readonly unknown[]>(
  command: Command,
  io: CliIo,
  ids: readonly Ids[],
  work: (perform: PerformCommand<Ids>, ...args: Args) => Promise<void>,
): void {
  bound.set(command, ids);
  command.action(async (...args: unknown[]) => {
    const checked = await loadFor(command, io);
    const { openEntrance } = await import('./command-entrance.ts');
    await using entrance = await openEntrance(checked, io);
    await work(entrance.perform, ...(args as unknown as Args));
  });
}

/** Says which operations a command asks the running hub for, beside what it does by itself. */
export function asking(command: Command, ids: readonly CommandOperationId[]): Command {
  bound.set(command, ids);
  return command;
}

/** The operations to which a command is bound. */
export function operationsOf(command: Command): readonly CommandOperationId[] {
  return bound.get(command) ?? [];
}
