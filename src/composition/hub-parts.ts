import type { Logger } from 'pino';
import type { Accounts } from '../accounts/accounts.ts';
import type { FirstAdministrator } from '../accounts/first-administrator.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { ExternalLogins } from '../pages/login/external-logins.ts';
import type { PageKit } from '../pages/page-kit.ts';
import type { RouteTable } from '../proxy/route-table.ts';
import type { Authority } from '../rbac/authority.ts';
import type { ServiceRegistry } from '../services/service-registry.ts';
import type { CsrfProtection } from '../sessions/csrf.ts';
import type { LoginSessions } from '../sessions/login-sessions.ts';
import type { BrowserSessions } from '../sessions/session-middleware.ts';
import type { HubDatabase } from '../store/database.ts';
import type { AccountParts } from './account-parts.ts';
import type { LoginParts } from './login-parts.ts';
import type { OAuthParts } from './oauth-parts.ts';
import type { ServerParts } from './server-parts.ts';
import type { Stores } from './stores.ts';
import type { UpkeepParts } from './upkeep-parts.ts';

/** The parts of a hub that its pages and its API are made of. */
export interface HubParts {
  readonly database: HubDatabase;
  readonly stores: Stores;
  readonly authority: Authority;
  readonly logins: LoginSessions;
  readonly sessions: BrowserSessions;
  readonly csrf: CsrfProtection;
  readonly login: LoginParts;
  readonly externalLogins: ExternalLogins;
  readonly upkeep: UpkeepParts;
  readonly oauth: OAuthParts;
  readonly server: ServerParts;
  readonly registry: ServiceRegistry;
  readonly routes: RouteTable;
  readonly accounts: Accounts;
  readonly account: AccountParts;
  readonly firstAdministrator: FirstAdministrator;
  readonly metrics: Metrics;
  readonly kit: PageKit;
  readonly apiPath: string;
  readonly log: Logger;
}
