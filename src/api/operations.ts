import { activityOperations } from './activity.ts';
import { auditOperations } from './audit.ts';
import { authorizationOperations } from './authorizations.ts';
import { gatewayOperations } from './gateway.ts';
import { groupOperations } from './groups.ts';
import { infoOperations } from './info.ts';
import { instanceOperations } from './instances.ts';
import { invitationOperations } from './invitations.ts';
import { loadOperations } from './loads.ts';
import { lockoutOperations } from './lockouts.ts';
import { noticeOperations } from './notices.ts';
import type { Operation } from './operation.ts';
import { proxyOperations } from './proxy.ts';
import { roleOperations } from './roles.ts';
import { runtimeServiceOperations } from './runtime-services.ts';
import { serverExtensionOperations } from './server-extension.ts';
import { serverOutputOperations } from './server-output.ts';
import { serverOperations } from './servers.ts';
import { serviceOperations } from './services.ts';
import { sessionOperations } from './sessions.ts';
import { shareOperations } from './shares.ts';
import { shutdownOperations } from './shutdown.ts';
import { tokenOperations } from './tokens.ts';
import { userOperations } from './users.ts';

/** What the operations work with, together. */
export type ApiDeps = Together<
  | typeof infoOperations
  | typeof proxyOperations
  | typeof shutdownOperations
  | typeof userOperations
  | typeof activityOperations
  | typeof tokenOperations
  | typeof sessionOperations
  | typeof invitationOperations
  | typeof lockoutOperations
  | typeof serverOperations
  | typeof loadOperations
  | typeof serverExtensionOperations
  | typeof serverOutputOperations
  | typeof shareOperations
  | typeof groupOperations
  | typeof roleOperations
  | typeof serviceOperations
  | typeof runtimeServiceOperations
  | typeof gatewayOperations
  | typeof instanceOperations
  | typeof authorizationOperations
  | typeof auditOperations
  | typeof noticeOperations
>;

/** Every operation of the API. */
export const operations: readonly Operation<ApiDeps>[] = [
  infoOperations,
  proxyOperations,
  shutdownOperations,
  userOperations,
  activityOperations,
  tokenOperations,
  sessionOperations,
  invitationOperations,
  lockoutOperations,
  serverOperations,
  loadOperations,
  serverExtensionOperations,
  serverOutputOperations,
  shareOperations,
  groupOperations,
  roleOperations,
  serviceOperations,
  runtimeServiceOperations,
  gatewayOperations,
  instanceOperations,
  authorizationOperations,
  auditOperations,
  noticeOperations,
].flat();

type DepsOf<List> = List extends readonly Operation<infer Deps>[] ? (deps: Deps) => void : never;

type Together<Lists> = DepsOf<Lists> extends (deps: infer Deps) => void ? Deps : never;
