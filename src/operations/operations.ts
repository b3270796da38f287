import type { z } from 'zod';
import type { JsonText } from '../platform/protocol/json-text.ts';
import { accessOperations } from './access.ts';
import { accountOperations } from './account.ts';
import { activityOperations } from './activity.ts';
import { auditOperations } from './audit.ts';
import { authorizationOperations } from './authorizations.ts';
import { budgetOperations } from './budgets.ts';
import { clientRegistrationOperations } from './client-registration.ts';
import { commandAccountOperations } from './command-accounts.ts';
import { deviceOperations } from './devices.ts';
import { gatewayOperations } from './gateway.ts';
import { groupOperations } from './groups.ts';
import { homePageOperations } from './home-page.ts';
import { homeOperations } from './homes.ts';
import { infoOperations } from './info.ts';
import { instanceOperations } from './instances.ts';
import { invitationOperations } from './invitations.ts';
import { loadOperations } from './loads.ts';
import { lockoutOperations } from './lockouts.ts';
import { noticeOperations } from './notices.ts';
import type { Operation } from './operation.ts';
import { overviewOperations } from './overview.ts';
import { ownTokenOperations } from './own-tokens.ts';
import { proxyOperations } from './proxy.ts';
import { roleOperations } from './roles.ts';
import { runtimeServiceOperations } from './runtime-services.ts';
import { searchOperations } from './search.ts';
import { serverExtensionOperations } from './server-extension.ts';
import { serverListOperations } from './server-list.ts';
import { serverOutputOperations } from './server-output.ts';
import { serverPageOperations } from './server-pages.ts';
import { serverOperations } from './servers.ts';
import { serviceOperations } from './services.ts';
import { sessionOperations } from './sessions.ts';
import { sharePageOperations } from './share-pages.ts';
import { shareOperations } from './shares.ts';
import { shutdownOperations } from './shutdown.ts';
import { signingKeyOperations } from './signing-keys.ts';
import { startAtLoginOperations } from './start-at-login.ts';
import { tokenOperations } from './tokens.ts';
import { usageOperations } from './usage.ts';
import { userBatchOperations } from './user-batches.ts';
import { userImportOperations } from './user-imports.ts';
import { userListOperations } from './user-list.ts';
import { userPageOperations } from './user-page.ts';
import { userOperations } from './users.ts';

/** What the operations work with, together. */
export type OperationDeps = Together<(typeof lists)[number]>;

const lists = [
  infoOperations,
  proxyOperations,
  shutdownOperations,
  userOperations,
  userListOperations,
  userBatchOperations,
  userImportOperations,
  userPageOperations,
  accountOperations,
  activityOperations,
  tokenOperations,
  ownTokenOperations,
  sessionOperations,
  invitationOperations,
  commandAccountOperations,
  lockoutOperations,
  signingKeyOperations,
  serverOperations,
  serverPageOperations,
  homePageOperations,
  searchOperations,
  loadOperations,
  usageOperations,
  budgetOperations,
  serverExtensionOperations,
  startAtLoginOperations,
  serverOutputOperations,
  shareOperations,
  sharePageOperations,
  groupOperations,
  roleOperations,
  accessOperations,
  serviceOperations,
  runtimeServiceOperations,
  clientRegistrationOperations,
  gatewayOperations,
  instanceOperations,
  authorizationOperations,
  deviceOperations,
  auditOperations,
  noticeOperations,
  overviewOperations,
  serverListOperations,
  homeOperations,
] as const;

type AnyOperation = (typeof lists)[number][number];

/** Names every operation. */
export type OperationId = AnyOperation['id'];

/** The operation of a name. */
export type OperationOf<Id extends OperationId> = Extract<AnyOperation, { readonly id: Id }>;

/** Every operation, by whichever entrance it is performed. */
export const allOperations: readonly Operation<OperationDeps>[] = lists.flat();

/** Those of the API, described or not. */
export const operations: readonly Operation<OperationDeps>[] = allOperations.filter(
  ({ audience }) => audience === undefined || audience === 'program',
);

const byId = new Map(allOperations.map((each) => [each.id, each]));

/** The operation of a name, to be performed. */
export function operationOf(id: OperationId): Operation<OperationDeps> {
  const found = byId.get(id);
  if (found === undefined) throw new Error(`there is no operation ${id}`);
  return found;
}

type CommandOperation = Extract<AnyOperation, { audience: 'command' } | { byCommand: true }>;

/** Names the operations that commands perform. */
export type CommandOperationId =
  | CommandOperation['id']
  | Extract<AnyOperation, { byCommand: 'by_running_hub' }>['id'];

/** What those work with that are performed in the process of a command, too. */
export type CommandDeps = Together<readonly CommandOperation[]>;

/** An operation that commands perform; undefined for any other. */
export function commandOperationOf(id: string): Operation<CommandDeps> | undefined {
  const found = byId.get(id as OperationId);
  return found?.audience === 'command' || found?.byCommand !== undefined
    ? (found as Operation<never> as Operation<CommandDeps>)
    : undefined;
}

/** What an operation answers. */
export type AnswerOf<Id extends OperationId> = Exclude<
  Extract<Awaited<ReturnType<OperationOf<Id>['handle']>>, { readonly body: unknown }>['body'],
  JsonText<never>
>;

/** The body that an operation takes. */
export type BodyOf<Id extends OperationId> =
  OperationOf<Id> extends { readonly body: infer Schema }
    ? Schema extends z.ZodType
      ? z.input<Schema>
      : undefined
    : undefined;

type DepsOf<List> = List extends readonly {
  readonly handle: (request: never, deps: infer Deps) => unknown;
}[]
  ? (deps: Deps) => void
  : never;

type Together<Lists> = DepsOf<Lists> extends (deps: infer Deps) => void ? Deps : never;
