/** The client library, `@hub-gateway/hub/client`: everything a service needs to know who its visitors are. */

export { HubError, type HubErrorCode } from '../platform/errors.ts';
export { isAllowed } from './access-rule.ts';
export type { Environment, HubAuthOptions, HubOAuthOptions } from './client-options.ts';
export type {
  Allowed,
  Answered,
  Decision,
  Denied,
  Redirected,
  RequestLike,
  Shown,
  TokenSource,
} from './decision.ts';
export { toAnswer } from './decision.ts';
export { type ExpressMiddleware, expressMiddleware } from './express-adapter.ts';
export type { CodeExchange, CodeExchangeResult, HubApi, UserModel } from './hub-api.ts';
export { HubAuth } from './hub-auth.ts';
export { HubOAuth } from './hub-oauth.ts';
export { koaMiddleware } from './koa-adapter.ts';
export {
  type AdapterOptions,
  type AllowedHandler,
  type AllowedUpgradeHandler,
  type ErrorListener,
  nodeListener,
  nodeUpgradeListener,
} from './node-adapter.ts';
