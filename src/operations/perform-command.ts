import { z } from 'zod';
import type { Caller } from '../identity/rbac/access-check.ts';
import { adminScopes } from '../identity/rbac/role.ts';
import type { ScopeCatalogue } from '../identity/rbac/scope-definitions.ts';
import { actAs } from '../platform/audit/actor.ts';
import { undoneAction } from '../platform/audit/undone.ts';
import { anyVersion } from '../platform/crypto/version.ts';
import { HubError } from '../platform/errors.ts';
import { hubCommand } from '../platform/files/program-folder.ts';
import type { AuditTrail } from '../platform/store/audit-trail.ts';
import { text } from '../platform/texts/text.ts';
import {
  type AnswerOf,
  type BodyOf,
  type CommandDeps,
  type CommandOperationId,
  commandOperationOf,
} from './operations.ts';
import type { Perform } from './perform.ts';

const texts = z.record(z.string(), z.string());

const commandCall = z.object({
  operation: z.string(),
  params: texts.default({}),
  query: texts.default({}),
  body: z.unknown().optional(),
  account: z.string().describe('By which the command is run on its machine.'),
});

/** What a command asks to be performed, as it is sent to a hub. */
export type CommandCall = z.input<typeof commandCall>;

/** The operation of the channel by which commands have a running hub perform one. */
export const commandChannelOperation = 'perform';

/** Performs operations for a command, in a running hub or in its own process. */
export type PerformCommand<Ids extends CommandOperationId = CommandOperationId> = <Id extends Ids>(
  id: Id,
  asked?: Pick<CommandCall, 'params' | 'query'> & { readonly body?: BodyOf<Id> },
) => Promise<AnswerOf<Id>>;

/** Performs what commands ask for; whoever runs one on the machine may do all that an administrator may. */
export function createCommandEntrance(deps: {
  readonly perform: Perform<CommandDeps>;
  readonly catalogue: ScopeCatalogue;
  readonly audit: Pick<AuditTrail, 'recordBounded'>;
  /** Whether this is a hub, not the process of a command. */
  readonly isHub: boolean;
}): (call: unknown) => Promise<unknown> {
  const scopes = adminScopes(deps.catalogue);

  return async (call) => {
    const { operation: id, params, query, body, account } = commandCall.parse(call);
    const operation = commandOperationOf(id);
    if (operation === undefined) {
      throw new HubError(
        'unavailable',
        text`The hub that runs has another version than this command.`,
        {
          hint: text`Restart the hub, or use the command that it was started with.`,
        },
      );
    }
    if (operation.byCommand === 'by_running_hub' && !deps.isHub) throw noHubRuns();
    const owner = { kind: 'service', name: `command line (${account})` } as const;
    const caller: Caller = { owner, scopes, isCommand: true };
    return actAs({ kind: 'command_line', name: account }, async () => {
      try {
        const { reply } = await deps.perform(operation, {
          params,
          query,
          identify: async () => ({ caller }),
          requireRecentLogin: async () => undefined,
          readBody: async () => body,
          requireVersion: anyVersion,
        });
        return reply.body;
      } catch (error) {
        const auditEvent = undoneAction(error);
        if (auditEvent !== undefined) deps.audit.recordBounded(auditEvent);
        throw error;
      }
    });
  };
}

/** For what only a running hub can do. */
export function noHubRuns(): HubError {
  return new HubError('unavailable', 'No hub runs on this database.', {
    hint: `Start one with: ${hubCommand('start')}`,
  });
}
