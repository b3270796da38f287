import { createPasswordHasher } from '../../src/identity/authentication/password-hash.ts';
import type {
  AuthenticatorHost,
  PasswordCredential,
  PluginSurroundings,
} from '../../src/plugin/plugin.ts';

export interface TestHostOptions extends Partial<AuthenticatorHost> {
  /** Accounts of the hub with their passwords. */
  readonly passwords?: Readonly<Record<string, string>>;
  /** Accounts that must choose another password. */
  readonly mustChange?: readonly string[];
}

/** A host for one authenticator in a test: everything in memory, everything recorded. */
export interface TestHost extends AuthenticatorHost {
  /** What the authenticator logged, as text. */
  readonly logged: string[];
  readonly storedCredentials: Map<string, PasswordCredential>;
  readonly storedSettings: Map<string, string>;
}

/** What a plugin may know of a hub that runs nowhere. */
export const testSurroundings: PluginSurroundings = {
  name: 'tested',
  publicUrl: 'http://127.0.0.1:8000/',
  isLoopbackOnly: true,
  trustedLocalAddress: undefined,
  asksForCertificates: true,
  hubTitle: 'Hub',
  directory: process.cwd(),
};

/** Creates a host; anything of it can be replaced. */
export async function createTestHost(options: TestHostOptions = {}): Promise<TestHost> {
  const { passwords = {}, mustChange = [], ...replaced } = options;
  // Cheap on purpose: what is tested is the plugin, not the cost of a hash.
  const passwordHasher = createPasswordHasher({ memoryKib: 64, passes: 1, parallelism: 1 });
  const storedCredentials = new Map<string, PasswordCredential>();
  for (const [userName, password] of Object.entries(passwords)) {
    const passwordHash = await passwordHasher.hash(password);
    storedCredentials.set(userName, { passwordHash, mustChange: mustChange.includes(userName) });
  }
  const storedSettings = new Map<string, string>();
  const logged: string[] = [];
  const record = (fields: object, message: string): void => {
    logged.push(`${message} ${JSON.stringify(fields)}`);
  };
  return {
    ...testSurroundings,
    callbackUrl: 'http://127.0.0.1:8000/hub/oauth_callback',
    shared: { enableAuthState: false, manageGroups: false },
    log: { debug: record, info: record, warn: record, error: record },
    credentials: {
      findPasswordHash: async (userName) => storedCredentials.get(userName),
      setPasswordHash: async (userName, passwordHash) => {
        storedCredentials.set(userName, { passwordHash, mustChange: false });
      },
      rehashPassword: async (userName, passwordHash, { replacing }) => {
        const stored = storedCredentials.get(userName);
        if (stored?.passwordHash === replacing) {
          storedCredentials.set(userName, { ...stored, passwordHash });
        }
      },
    },
    passwordHasher,
    settings: {
      find: async (key) => storedSettings.get(key),
      set: async (key, value) => {
        storedSettings.set(key, value);
      },
    },
    defaultClientId: async () => 'hub-client-00000000-0000-4000-8000-000000000000',
    ...replaced,
    logged,
    storedCredentials,
    storedSettings,
  };
}
