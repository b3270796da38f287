import { pino } from 'pino';
import { afterEach } from 'vitest';
import { createAccountStore } from '../../src/identity/authentication/account-store.ts';
import { createLoginService } from '../../src/identity/authentication/login-service.ts';
import { createLoginThrottle } from '../../src/identity/authentication/login-throttle.ts';
import { createRoleStore } from '../../src/identity/rbac/role-store.ts';
import { createGroupStore } from '../../src/identity/users/group-store.ts';
import { createIdentityStore } from '../../src/identity/users/identity-store.ts';
import { createPasswordCredentialStore } from '../../src/identity/users/password-credential-store.ts';
import { createUserInfoStore } from '../../src/identity/users/user-info-store.ts';
import { createUserStore } from '../../src/identity/users/user-store.ts';
import { Secret } from '../../src/platform/config/secret.ts';
import { authenticatorSection } from '../../src/platform/config/sections-schema.ts';
import { createSealer } from '../../src/platform/crypto/sealer.ts';
import type { HubDatabase } from '../../src/platform/store/database.ts';
import { openDatabase } from '../../src/platform/store/open-database.ts';
import type {
  AuthenticatedUser,
  Authenticator,
  LoginRequest,
} from '../../src/plugin/host/authenticator.ts';
import { memorySpace } from './memory-space.ts';

const log = pino({ level: 'silent' });

const request: LoginRequest = {
  address: '192.0.2.1',
  peerAddress: '192.0.2.1',
  isTrustedProxy: false,
  userAgent: 'test',
  headers: {},
  signal: new AbortController().signal,
};

export const formLogin = { kind: 'form', label: 'Form', fields: [] } as const;

/** Accepts everybody whose password is `right`. */
const anybody: Authenticator = {
  login: formLogin,
  authenticate: async (form) =>
    form.get('password') === 'right'
      ? { outcome: 'authenticated', user: { name: form.get('username') ?? '' } }
      : { outcome: 'refused', reason: 'credentials' },
};

const ownAccounts: Authenticator = { ...anybody, ownsAccounts: true };
export const provider: Authenticator = {
  login: { kind: 'external', label: 'Provider' },
  beginLogin: () => Promise.reject(new Error('nobody goes there')),
  completeLogin: () => Promise.reject(new Error('nobody comes back')),
};

/**
 * Makes login services on empty databases in memory, with the authenticators `any`, `own`, `work` and `other`;
 * each ends with its test.
 */
export function useLoginWorlds() {
  const opened: HubDatabase[] = [];
  afterEach(async () => {
    for (const database of opened.splice(0)) await database[Symbol.asyncDispose]();
  });
  return async (
    settings: object = {},
    authenticators: Readonly<Record<string, Authenticator>> = {},
  ) => {
    const database = await openDatabase('sqlite::memory:', { directory: '.', log });
    opened.push(database);
    return createLoginWorld(database, settings, authenticators);
  };
}

function createLoginWorld(
  opened: HubDatabase,
  settings: object,
  authenticators: Readonly<Record<string, Authenticator>>,
) {
  const config = authenticatorSection.parse(settings);
  const sealer = createSealer([new Secret('a test secret of some length')], 'auth-state');
  const stores = {
    users: createUserStore(opened),
    groups: createGroupStore(opened),
    userInfo: createUserInfoStore(opened),
    identities: createIdentityStore(opened, { sealer }),
    accounts: createAccountStore(opened),
    credentials: createPasswordCredentialStore(opened),
    roles: createRoleStore(opened),
  };
  const all: Record<string, Authenticator> = {
    any: anybody,
    own: ownAccounts,
    work: provider,
    other: provider,
    ...authenticators,
  };
  const throttle = createLoginThrottle({ ...config, records: memorySpace() });
  const service = createLoginService({
    ...stores,
    config,
    binding: {
      isFor: () => true,
      isNamed: () => false,
      choose: () => 'any',
    },
    throttle,
    audit: opened.audit,
    log,
    authenticators: {
      find: (name) => (all[name] === undefined ? undefined : { name, authenticator: all[name] }),
    },
  });
  const login = (username: string, password = 'right', authenticator = 'any') =>
    service.attemptLogin(authenticator, new Map(Object.entries({ username, password })), request);
  const admit = (user: AuthenticatedUser, authenticator = 'work') =>
    service.admitUser(user, authenticator);
  return { ...stores, service, login, admit, throttle };
}
