import { userInfo } from 'node:os';
import { resolve } from 'node:path';
import process from 'node:process';
import { pino } from 'pino';
import { createSetUpLink, type SetUpLink } from '../accounts/set-up-link.ts';
import {
  type AccountPasswords,
  createAccountPasswords,
} from '../authentication/account-passwords.ts';
import { createAuthenticators } from '../authentication/create-authenticators.ts';
import { createPasswordHasher } from '../authentication/password-hash.ts';
import {
  type AccessTokenStore,
  createAccessTokenStore,
} from '../oauth/tokens/access-token-store.ts';
import { createLoginSessionStore } from '../sessions/login-session-store.ts';
import type { AuditTrail } from '../store/audit-trail.ts';
import type { HubDatabase } from '../store/database.ts';
import { type KeyvSpaces, openKeyv } from '../store/keyv.ts';
import { openDatabase } from '../store/open-database.ts';
import { createSettingStore } from '../store/setting-store.ts';
import { createPasswordCredentialStore } from '../users/password-credential-store.ts';
import {
  createSystemAccountStore,
  type SystemAccountStore,
} from '../users/system-account-store.ts';
import { createUserStore, type UserStore } from '../users/user-store.ts';
import type { CheckedConfig } from './checked-config.ts';

/** What commands need of the hub's state, while the hub itself may or may not run. */
export interface CliStores extends AsyncDisposable {
  readonly users: UserStore;
  readonly systemAccounts: SystemAccountStore;
  readonly accessTokens: AccessTokenStore;
  readonly audit: AuditTrail;
  readonly setUpLink: Pick<SetUpLink, 'issue'>;
  /** Opens the expiring state. */
  openKeyv(): Promise<KeyvSpaces>;
  /** Opens the configured authenticators to learn what they ask of passwords. */
  openPasswords(): Promise<AccountPasswords & AsyncDisposable>;
}

/** Opens the state of a configuration. */
export async function openCliStores({ config, plugins }: CheckedConfig): Promise<CliStores> {
  const log = pino({ level: 'silent' });
  const database: HubDatabase = await openDatabase(config.Hub.database_url, {
    directory: resolve(config.directory),
    actor: { kind: 'command_line', name: accountName() },
    log,
  });
  const credentials = createPasswordCredentialStore(database);
  const sessions = createLoginSessionStore(database);
  const settings = createSettingStore(database);
  const passwordHasher = createPasswordHasher();

  async function endLoginsOf(userId: string, { except }: { readonly except?: string }) {
    const others = (await sessions.listOfUser(userId)).filter(
      ({ sessionId }) => sessionId !== except,
    );
    await Promise.all(others.map(({ sessionId }) => sessions.end(sessionId)));
  }

  const users = createUserStore(database);
  const accessTokens = createAccessTokenStore({ database });

  return {
    users,
    systemAccounts: createSystemAccountStore(database),
    accessTokens,
    audit: database.audit,
    setUpLink: createSetUpLink({ ...config, settings, users, credentials }),
    openKeyv: () =>
      openKeyv({ url: config.Hub.keyv_url, database, directory: config.directory, log }),
    async openPasswords() {
      // Only those that say what a password must be: the others may want a provider to be there.
      const prepared = plugins.authenticators.filter(({ plugin }) => plugin.name === 'password');
      const authenticators = await createAuthenticators(prepared, {
        config: config.Authenticator,
        credentials,
        settings,
        settingsOf: () => settings,
        passwordHasher,
        log,
      });
      return {
        ...createAccountPasswords({
          authenticators,
          credentials,
          passwordHasher,
          countApiTokens: (userId) => accessTokens.countOfUser(userId),
          endLoginsOf,
        }),
        [Symbol.asyncDispose]: () => authenticators[Symbol.asyncDispose](),
      };
    },
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  };
}

/** The account on this machine; its number where it has no name. */
function accountName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? '');
  }
}
