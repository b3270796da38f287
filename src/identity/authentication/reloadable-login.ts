import type { Logger } from 'pino';
import type { Config } from '../../platform/config/config.ts';
import type { PreparedPlugins } from '../../plugin/host/prepare-plugins.ts';
import type { AccountBinding } from './account-binding.ts';
import type { Authenticators } from './create-authenticators.ts';
import type { LinkIdentity } from './identity-linking.ts';
import type { LoginService } from './login-service.ts';
import type { UserNameRules } from './user-name-rules.ts';
import type { UserRefresh } from './user-refresh.ts';

/** How users log in by a configuration: replaced as a whole by a reload. */
export interface LoginMethods {
  readonly authenticators: Authenticators;
  readonly binding: AccountBinding;
  readonly names: UserNameRules;
  readonly loginService: LoginService;
  readonly linkIdentity: LinkIdentity;
  readonly refresh: UserRefresh;
}

/** The login methods, behind one object that stays while a reload replaces what is behind it. */
export interface ReloadableLogin extends LoginMethods, AsyncDisposable {
  /** Creates the login methods of a new configuration, then disposes of the former ones. */
  reload(config: Config, plugins: PreparedPlugins): Promise<void>;
}

export async function createReloadableLogin(
  create: (config: Config, plugins: PreparedPlugins) => Promise<LoginMethods>,
  first: { readonly config: Config; readonly plugins: PreparedPlugins },
  log: Logger,
): Promise<ReloadableLogin> {
  let current = await create(first.config, first.plugins);

  return {
    authenticators: {
      get list() {
        return current.authenticators.list;
      },
      find: (name) => current.authenticators.find(name),
      callbackUrlOf: (name) => current.authenticators.callbackUrlOf(name),
      [Symbol.asyncDispose]: () => current.authenticators[Symbol.asyncDispose](),
    },
    binding: {
      isFor: (...account) => current.binding.isFor(...account),
      isNamed: (name) => current.binding.isNamed(name),
      choose: (asked) => current.binding.choose(asked),
    },
    names: {
      resolve: (name) => current.names.resolve(name),
      problemOf: (name) => current.names.problemOf(name),
      resolveNew: (name) => current.names.resolveNew(name),
    },
    loginService: {
      attemptLogin: (...attempt) => current.loginService.attemptLogin(...attempt),
      admitUser: (...admission) => current.loginService.admitUser(...admission),
      concludeLogin: (...conclusion) => current.loginService.concludeLogin(...conclusion),
    },
    linkIdentity: (...link) => current.linkIdentity(...link),
    refresh: {
      refreshIfDue: (login) => current.refresh.refreshIfDue(login),
      refreshNow: (login) => current.refresh.refreshNow(login),
    },
    async reload(config, plugins) {
      const former = current;
      current = await create(config, plugins);
      try {
        await former.authenticators[Symbol.asyncDispose]();
      } catch (error) {
        log.warn({ err: error }, 'former authenticator did not close');
      }
    },
    [Symbol.asyncDispose]: () => current.authenticators[Symbol.asyncDispose](),
  };
}
