import { once } from 'node:events';
import { connect as connectSocket, isIP } from 'node:net';
import type { ConnectionOptions } from 'node:tls';
import {
  Client,
  type Entry,
  InappropriateAuthError,
  InvalidCredentialsError,
  InvalidDNSyntaxError,
  NoSuchObjectError,
  ResultCodeError,
  SizeLimitExceededError,
} from 'ldapts';
import { escapeFilterValue } from './escape.ts';
import type { LdapOptions } from './options.ts';

/** A user's entry in the directory. */
export interface DirectoryEntry {
  readonly dn: string;
  /** Values of an attribute, in whatever case its name came. */
  values(attribute: string): readonly string[];
}

/** One encrypted connection to the directory. */
export interface DirectoryConnection extends AsyncDisposable {
  /** False when the directory says that name or password is wrong. */
  bind(dn: string, password: string): Promise<boolean>;
  /** The entries of a search; undefined when there are more than the limit. */
  search(
    base: string,
    options: {
      readonly scope: 'base' | 'sub';
      readonly filter: string;
      readonly attributes: readonly string[];
      readonly limit?: number;
    },
  ): Promise<readonly DirectoryEntry[] | undefined>;
}

/** Connects to the first address that answers; throws when none does. */
export async function connect(options: LdapOptions): Promise<DirectoryConnection> {
  const [first = '', ...others] = options.url;
  let url = first;
  for (const next of others) {
    if (await isReachable(url, options.timeout * 1000)) break;
    url = next;
  }
  return connectTo(url, options);
}

/** Whether something listens: the client itself connects only when it has something to ask. */
async function isReachable(url: string, timeoutMs: number): Promise<boolean> {
  const { hostname, port, protocol } = new URL(url);
  const defaultPort = protocol === 'ldaps:' ? 636 : 389;
  const socket = connectSocket({ host: hostname, port: Number(port || defaultPort) });
  try {
    await once(socket, 'connect', { signal: AbortSignal.timeout(timeoutMs) });
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

async function connectTo(url: string, options: LdapOptions): Promise<DirectoryConnection> {
  const { hostname, protocol } = new URL(url);
  const tlsOptions: ConnectionOptions = {
    host: hostname,
    ...(isIP(hostname) === 0 ? { servername: hostname } : {}),
    ...(options.tls_ca === undefined ? {} : { ca: options.tls_ca }),
    minVersion: 'TLSv1.2',
  };
  const timeoutMs = options.timeout * 1000;
  const client = new Client({
    url,
    timeout: timeoutMs,
    connectTimeout: timeoutMs,
    ...(protocol === 'ldaps:' ? { tlsOptions } : {}),
  });
  if (protocol === 'ldap:' && options.start_tls) await startTls(client, tlsOptions);

  return {
    async bind(dn, password) {
      // RFC 4513 §5.1.2: with an empty password the directory "succeeds" without looking.
      if (password === '') return false;
      try {
        await client.bind(dn, password);
        return true;
      } catch (error) {
        if (isWrongCredentials(error)) return false;
        throw error;
      }
    },

    async search(base, { scope, filter, attributes, limit }) {
      try {
        const { searchEntries } = await client.search(base, {
          scope,
          filter,
          attributes: [...attributes],
          timeLimit: Math.ceil(options.timeout),
          ...(limit === undefined ? { paged: { pageSize: 500 } } : { sizeLimit: limit + 1 }),
        });
        if (limit !== undefined && searchEntries.length > limit) return undefined;
        return searchEntries.map(toEntry);
      } catch (error) {
        if (error instanceof SizeLimitExceededError) return undefined;
        if (error instanceof NoSuchObjectError) return [];
        throw error;
      }
    },

    [Symbol.asyncDispose]: () => close(client),
  };
}

async function startTls(client: Client, tlsOptions: ConnectionOptions): Promise<void> {
  try {
    await client.startTLS(tlsOptions);
  } catch (error) {
    await close(client);
    throw error;
  }
}

async function close(client: Client): Promise<void> {
  try {
    await client.unbind();
  } catch {
    // The other side has gone already.
  }
}

function isWrongCredentials(error: unknown): boolean {
  return (
    error instanceof InvalidCredentialsError ||
    error instanceof InappropriateAuthError ||
    error instanceof InvalidDNSyntaxError ||
    error instanceof NoSuchObjectError
  );
}

function toEntry(entry: Entry): DirectoryEntry {
  const byName = new Map(
    Object.entries(entry).map(([name, values]) => [
      name.toLowerCase(),
      [values].flat().map((value) => (typeof value === 'string' ? value : value.toString('hex'))),
    ]),
  );
  return { dn: entry.dn, values: (attribute) => byName.get(attribute.toLowerCase()) ?? [] };
}

/** Says what went wrong in words for a log: never with what was sent. */
export function failureText(error: unknown): string {
  if (error instanceof ResultCodeError) return `${error.name} (${error.code})`;
  return error instanceof Error ? error.message.slice(0, 300) : 'unknown failure';
}

/** Fills a filter template with values that cannot change its meaning. */
export function fillFilter(template: string, values: Readonly<Record<string, string>>): string {
  return template.replaceAll(/\{(dn|username)\}/g, (_all, name: string) =>
    escapeFilterValue(values[name] ?? ''),
  );
}
