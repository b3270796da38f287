import { randomUUID } from 'node:crypto';
import type {
  AuthenticatedUser,
  AuthenticationResult,
  AuthenticatorPlugin,
  FormAuthenticator,
  ProviderStatus,
  RefreshResult,
} from '../../src/plugin/plugin.ts';
import { judgeGroups } from '../external/group-rules.ts';
import { nameAndPassword } from '../external/name-and-password.ts';
import {
  connect,
  type DirectoryConnection,
  type DirectoryEntry,
  failureText,
  fillFilter,
} from './directory.ts';
import { escapeDnValue, escapeFilterValue } from './escape.ts';
import { findProblems, type LdapOptions, optionsSchema } from './options.ts';

/** No honest name or password is longer. */
const maxNameLength = 255;
const maxPasswordBytes = 1024;

const refused: AuthenticationResult = { outcome: 'refused', reason: 'credentials' };

const plugin: AuthenticatorPlugin<LdapOptions, FormAuthenticator> = {
  kind: 'authenticator',
  name: 'ldap',
  section: 'LDAPAuthenticator',
  optionsSchema,
  secretOptions: ['bind_password', 'tls_ca'],
  findProblems,

  create(options, host) {
    const [problem] = findProblems(options, host);
    if (problem !== undefined) throw new Error(`${problem.option}: ${problem.message}`);
    const loginAttributes = options.login_attributes ?? [options.username_attribute];
    const attributes = [
      ...new Set([
        ...loginAttributes,
        options.username_attribute,
        options.display_attribute,
        ...options.name_attributes,
        options.email_attribute,
        ...(options.id_attribute === undefined ? [] : [options.id_attribute]),
      ]),
    ];
    let status: ProviderStatus = { state: 'ready' };

    async function asking<Result>(work: () => Promise<Result>): Promise<Result> {
      try {
        const result = await work();
        status = { state: 'ready' };
        return result;
      } catch (error) {
        const message = failureText(error);
        host.log.error({ reason: message }, 'unexpected directory response');
        status = { state: 'unavailable', message };
        throw error;
      }
    }

    async function authenticate(username: string, password: string): Promise<AuthenticationResult> {
      const { bind_dn_template: templates } = options;
      return templates === undefined
        ? bySearch(username, password)
        : byTemplate(templates, username, password);
    }

    async function byTemplate(
      templates: readonly string[],
      username: string,
      password: string,
    ): Promise<AuthenticationResult> {
      for (const template of templates) {
        await using connection = await connect(options);
        const dn = template.replaceAll('{username}', () => escapeDnValue(username));
        if (!(await connection.bind(dn, password))) continue;
        const search = { scope: 'base', filter: options.user_filter, attributes } as const;
        const [entry] = (await connection.search(dn, search)) ?? [];
        if (entry === undefined || !isNamed(entry, username)) return refused;
        // Awaited here: the connection closes when this block is left.
        return await conclude(entry, connection);
      }
      return refused;
    }

    async function bySearch(username: string, password: string): Promise<AuthenticationResult> {
      await using connection = await connectAsHub();
      const entry = await findEntry(connection, username);
      await using visitor = await connect(options);
      // The same work for an unknown user: the time must not tell who has an account.
      const dn = entry?.dn ?? `cn=${randomUUID()},${options.user_search_base ?? ''}`;
      const isRight = await visitor.bind(dn, password);
      return entry === undefined || !isRight ? refused : await conclude(entry, connection);
    }

    async function connectAsHub(): Promise<DirectoryConnection> {
      const connection = await connect(options);
      const { bind_dn: dn, bind_password: password } = options;
      if (dn === undefined || password === undefined) return connection;
      if (await connection.bind(dn, password)) return connection;
      await connection[Symbol.asyncDispose]();
      throw new Error('the directory refuses bind_dn and bind_password');
    }

    async function findEntry(
      connection: DirectoryConnection,
      username: string,
    ): Promise<DirectoryEntry | undefined> {
      const value = escapeFilterValue(username);
      const alternatives = loginAttributes.map((name) => `(${name}=${value})`).join('');
      const found = await connection.search(options.user_search_base ?? '', {
        scope: 'sub',
        filter: `(&${options.user_filter}(|${alternatives}))`,
        attributes,
        limit: 1,
      });
      if (found === undefined) {
        host.log.warn(
          {},
          'more than one entry has the same login name: logins with it are refused',
        );
      }
      const [entry] = found ?? [];
      return entry !== undefined && isNamed(entry, username) ? entry : undefined;
    }

    /**
     * Whether the entry has what was typed among its login names. A directory takes more for equal
     * than the hub does (spaces, full-width letters); each such alias would have a lock-out of its own.
     */
    function isNamed(entry: DirectoryEntry, username: string): boolean {
      const names = loginAttributes.flatMap((attribute) => entry.values(attribute));
      return names.some((name) => canonical(name) === canonical(username));
    }

    async function conclude(
      entry: DirectoryEntry,
      connection: DirectoryConnection,
    ): Promise<AuthenticationResult> {
      const user = await userOf(entry, connection);
      if (user !== undefined) return { outcome: 'authenticated', user };
      host.log.warn(
        { attributes: [options.username_attribute, options.id_attribute] },
        'directory entry without user attributes',
      );
      return { outcome: 'refused', reason: 'invalid_response' };
    }

    async function userOf(
      entry: DirectoryEntry,
      connection: DirectoryConnection,
    ): Promise<AuthenticatedUser | undefined> {
      const [name] = entry.values(options.username_attribute);
      const { id_attribute: idAttribute } = options;
      const [subject] = idAttribute === undefined ? [undefined] : entry.values(idAttribute);
      if (name === undefined || (idAttribute !== undefined && subject === undefined))
        return undefined;
      const [display] = entry.values(options.display_attribute);
      const [displayName] = options.name_attributes.flatMap((attribute) => entry.values(attribute));
      const [email] = entry.values(options.email_attribute);
      const groups = await groupsOf(entry.dn, name, connection);
      const held = new Set((groups ?? []).map(canonical));
      return {
        name,
        ...(subject === undefined ? {} : { subject }),
        ...(display === undefined ? {} : { display }),
        info: { displayName, email, isEmailVerified: true },
        ...(groups === undefined ? {} : { groups }),
        ...judgeGroups(options, (group) => held.has(canonical(group))),
        authState: { dn: entry.dn },
      };
    }

    async function groupsOf(
      dn: string,
      username: string,
      connection: DirectoryConnection,
    ): Promise<readonly string[] | undefined> {
      if (options.group_search_base === undefined) return undefined;
      const found = await connection.search(options.group_search_base, {
        scope: 'sub',
        filter: fillFilter(options.group_filter, { dn, username }),
        attributes: [options.group_name_attribute],
      });
      return (found ?? []).flatMap((group) => group.values(options.group_name_attribute));
    }

    /** Looks whether the person is still there, with an account of the hub's own. */
    async function refreshUser({ authState }: AuthenticatedUser): Promise<RefreshResult> {
      const dn = authState?.['dn'];
      if (typeof dn !== 'string') return { outcome: 'login_required' };
      try {
        return await asking(async () => {
          await using connection = await connectAsHub();
          const search = { scope: 'base', filter: options.user_filter, attributes } as const;
          const [entry] = (await connection.search(dn, search)) ?? [];
          const user = entry && (await userOf(entry, connection));
          if (user === undefined) {
            return { outcome: 'login_required', message: 'The directory no longer knows you.' };
          }
          return { outcome: 'updated', user };
        });
      } catch (error) {
        return { outcome: 'unavailable', message: failureText(error) };
      }
    }

    const authenticator: FormAuthenticator = {
      login: {
        kind: 'form',
        label: options.label,
        fields: nameAndPassword,
      },
      status: () => status,

      async reach() {
        try {
          await using connection = await connectAsHub();
          const base = options.user_search_base ?? '';
          await connection.search(base, {
            scope: 'base',
            filter: '(objectClass=*)',
            attributes: [],
          });
        } catch (error) {
          throw new Error(`${options.url.join(', ')}: ${failureText(error)}`, { cause: error });
        }
      },

      async authenticate(form) {
        const username = (form.get('username') ?? '').trim();
        const password = form.get('password') ?? '';
        const isImpossible =
          username === '' ||
          username.length > maxNameLength ||
          !username.isWellFormed() ||
          /\p{Cc}/u.test(username) ||
          password === '' ||
          password.includes('\u0000') ||
          Buffer.byteLength(password) > maxPasswordBytes;
        return isImpossible ? refused : asking(() => authenticate(username, password));
      },
    };
    return options.user_search_base === undefined
      ? authenticator
      : { ...authenticator, refreshUser };
  },
};

export default plugin;

/** As the hub compares names: lower case, one form of Unicode, no space around. */
function canonical(name: string): string {
  return name.trim().normalize('NFC').toLowerCase().normalize('NFC');
}
