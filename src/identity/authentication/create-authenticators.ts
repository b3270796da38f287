import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import type { AuthenticatorConfig } from '../../platform/config/config.ts';
import { StartupError } from '../../platform/errors.ts';
import { createPluginLog } from '../../platform/logging/plugin-log.ts';
import type {
  Authenticator,
  CredentialStore,
  FormAuthenticator,
  PasswordHasher,
  SettingStore,
} from '../../plugin/host/authenticator.ts';
import {
  type AuthenticatorServices,
  type PreparedAuthenticator,
  startAuthenticator,
} from '../../plugin/host/create-plugins.ts';
import { isExternal, isForm } from '../../plugin/host/login-kinds.ts';
import { createUserNameRules } from './user-name-rules.ts';

/** An authenticator under the name that the configuration gives it. */
export interface NamedAuthenticator<Kind extends Authenticator = Authenticator> {
  readonly name: string;
  readonly authenticator: Kind;
}

/** Authenticators in the order of the login page. Disposing of them closes what they opened. */
export interface Authenticators extends AsyncDisposable {
  readonly list: readonly NamedAuthenticator[];
  find(name: string): NamedAuthenticator | undefined;
  /** Where the provider of an external authenticator sends browsers back. */
  callbackUrlOf(name: string): string | undefined;
}

/** The authenticator whose accounts, with their passwords, are the hub's own, when there is one. */
export function accountOwnerOf({
  list,
}: Pick<Authenticators, 'list'>): NamedAuthenticator<FormAuthenticator> | undefined {
  return list
    .flatMap(({ name, authenticator }) => (isForm(authenticator) ? { name, authenticator } : []))
    .find(({ authenticator }) => authenticator.ownsAccounts === true);
}

/** The only login method, when that is an external provider: a browser may be sent there at once. */
export function onlyExternalOf({
  list: [only, ...others],
}: Pick<Authenticators, 'list'>): NamedAuthenticator | undefined {
  return others.length === 0 && only !== undefined && isExternal(only.authenticator)
    ? only
    : undefined;
}

export interface AuthenticatorDeps {
  readonly config: AuthenticatorConfig;
  readonly credentials: CredentialStore;
  readonly settings: {
    /** Keeps the value unless there is one, and returns the one that is kept. */
    keep(key: string, value: string): Promise<string>;
  };
  /** What one authenticator keeps for itself. */
  readonly settingsOf: (authenticatorName: string) => SettingStore;
  readonly passwordHasher: PasswordHasher;
  readonly log: Logger;
}

/** Creates the prepared authenticators; throws a StartupError that names the one that failed. */
export async function createAuthenticators(
  prepared: readonly PreparedAuthenticator[],
  deps: AuthenticatorDeps,
): Promise<Authenticators> {
  await using created = new AsyncDisposableStack();
  const list: NamedAuthenticator[] = [];
  for (const one of prepared) {
    const { name } = one.entry;
    try {
      const authenticator = await startAuthenticator(one, createServices(name, deps));
      created.defer(async () => authenticator[Symbol.asyncDispose]?.());
      list.push({ name, authenticator });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new StartupError(`the authenticator "${name}" cannot start: ${reason}`, {
        cause: error,
      });
    }
  }
  const kept = created.move();
  return {
    list,
    find: (name) => list.find((candidate) => candidate.name === name),
    callbackUrlOf: (name) =>
      prepared.find(({ entry }) => entry.name === name)?.surroundings.callbackUrl,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function createServices(
  name: string,
  { config, credentials, settings, settingsOf, passwordHasher, log }: AuthenticatorDeps,
): AuthenticatorServices {
  const names = createUserNameRules(config);
  return {
    log: createPluginLog(log, { authenticator: name }),
    credentials: {
      findPasswordHash: (userName) => credentials.findPasswordHash(names.resolve(userName)),
      setPasswordHash: (userName, passwordHash) =>
        credentials.setPasswordHash(names.resolve(userName), passwordHash),
      rehashPassword: (userName, passwordHash, rehash) =>
        credentials.rehashPassword(names.resolve(userName), passwordHash, rehash),
    },
    passwordHasher,
    settings: settingsOf(name),
    defaultClientId: () => settings.keep('client-id-at-providers', `hub-client-${randomUUID()}`),
  };
}
