import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import process from 'node:process';
import { pino } from 'pino';
import type { Instance } from '../../cluster/instances/instance.ts';
import { placeOf } from '../../cluster/instances/instance-directory.ts';
import { createInstanceStore } from '../../cluster/instances/instance-store.ts';
import type { AnswerOf } from '../../operations/operations.ts';
import { commandChannelOperation, type PerformCommand } from '../../operations/perform-command.ts';
import type { HubDatabase } from '../../platform/store/database.ts';
import { openDatabase } from '../../platform/store/open-database.ts';
import type { CheckedConfig } from './checked-config.ts';
import type { CliIo, CommandEntrance } from './cli-io.ts';
import { createHubChannel, type HubChannel } from './hub-channel.ts';

/** Servers of a user who is deleted may take their time to stop. */
const timeoutMs = 300_000;

/** Opens the running hub to a command, or the hub's operations in this process where none answers. */
export async function openEntrance(
  checked: CheckedConfig,
  io: Pick<CliIo, 'openOperations'>,
): Promise<AsyncDisposable & { readonly perform: PerformCommand }> {
  await using opening = new AsyncDisposableStack();
  const { Hub, directory } = checked.config;
  const log = pino({ level: 'silent' });
  const options = { directory: resolve(directory), log };
  const database = opening.use(await openDatabase(Hub.database_url, options));
  const channel = createHubChannel(checked.config, database);
  const hub = await findHub(database, channel);
  const call: CommandEntrance['call'] =
    hub === undefined
      ? opening.use(await io.openOperations(checked, database)).call
      : (asked) => channel.call(hub, commandChannelOperation, asked, { timeoutMs });
  const account = accountName();
  const perform = (operation: string, asked = {}) => call({ operation, account, ...asked });
  const opened = opening.move();
  return {
    perform: perform as PerformCommand,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** What the running hub tells of its services, by their names; undefined where none answers. */
export async function askForServices(
  database: HubDatabase,
  config: CheckedConfig['config'],
): Promise<AnswerOf<'listServices'> | undefined> {
  const channel = createHubChannel(config, database);
  const hub = await findHub(database, channel);
  if (hub === undefined) return undefined;
  const asked = { operation: 'listServices', account: accountName() };
  return (await channel.call(hub, commandChannelOperation, asked)) as AnswerOf<'listServices'>;
}

async function findHub(database: HubDatabase, channel: HubChannel): Promise<Instance | undefined> {
  for (const instance of await createInstanceStore(database).list()) {
    if (placeOf(instance, channel.here).isUp && (await channel.answers(instance))) return instance;
  }
  return undefined;
}

/** The account on this machine; its number where it has no name. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? '');
  }
}
