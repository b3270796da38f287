import type { Logger } from 'pino';
import type { Accounts } from '../accounts/accounts.ts';
import type { ExternalLogins } from '../authentication/external-logins.ts';
import type { EndUpstreamLogins } from '../authentication/upstream-logout.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { PageContext } from '../pages/page-context.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { Authority } from '../rbac/authority.ts';
import type { ServiceRegistry } from '../services/service-registry.ts';
import type { CsrfProtection } from '../sessions/csrf.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { BrowserSessions } from '../sessions/session-middleware.ts';
import type { HubDatabase } from '../store/database.ts';
import type { ComposedAccounts } from './compose-accounts.ts';
import type { ComposedLogin } from './compose-login.ts';
import type { ComposedOAuth } from './compose-oauth.ts';
import type { ComposedServers } from './compose-servers.ts';
import type { Stores } from './stores.ts';

/** The parts of a hub that its pages and its API are made of. */
export interface HubParts {
  readonly database: HubDatabase;
  readonly stores: Stores;
  readonly authority: Authority;
  readonly logins: LoginSessions;
  readonly sessions: BrowserSessions;
  readonly csrf: CsrfProtection;
  readonly login: ComposedLogin;
  readonly externalLogins: ExternalLogins;
  readonly endUpstreamLogins: EndUpstreamLogins;
  readonly oauth: ComposedOAuth;
  readonly server: ComposedServers;
  readonly registry: ServiceRegistry;
  readonly routes: RouteTable;
  readonly accounts: Accounts;
  readonly account: ComposedAccounts;
  readonly metrics: Metrics;
  readonly pages: PageContext;
  readonly apiPath: string;
  readonly log: Logger;
}
