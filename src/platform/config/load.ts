import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { z } from 'zod';
import { ConfigError, type ConfigProblem } from '../errors.ts';
import { hubCommand } from '../files/program-folder.ts';
import { reasonOf } from '../files/read-file.ts';
import { socketPathOf } from './bind-address.ts';
import type { AuthenticatorEntry, Config } from './config.ts';
import { type ConfigCheck, runChecks } from './config-check.ts';
import { findContradictions, findWarnings, isWildcard } from './contradictions.ts';
import type { hubSection } from './hub-schema.ts';
import { resolveKnownSecrets } from './known-secrets.ts';
import { type JsoncDocument, readJsonc } from './read-jsonc.ts';
import { routeServices } from './route-services.ts';
import { Secret } from './secret.ts';
import { type ParsedSections, parseSections } from './sections.ts';
import type { spawnerSection } from './sections-schema.ts';
import { parseSubdomainHost } from './subdomain-host.ts';

export interface LoadConfigOptions {
  /** Path of the file; without it `hub.config.json`, else `hub.config.example.json`. */
  readonly file?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder against which `file` and the default names are resolved. */
  readonly directory?: string;
  /** Checks of parts above this one: services, roles, plugins. Their problems show with all others. */
  readonly checks?: readonly ConfigCheck[];
  /** Told what works but is probably a mistake. */
  readonly onWarning?: (warning: ConfigProblem) => void;
  /** Told where settings stand in the file. */
  readonly onRead?: (places: ConfigPlaces) => void;
}

/** Where the settings of a file stand in it. */
export type ConfigPlaces = Pick<JsoncDocument, 'positionOf'>;

const secondsPerDay = 86_400;

/**
 * Loads the whole configuration: frozen, checked, secrets resolved, defaults applied. Throws a
 * ConfigError with every problem at once.
 */
export async function loadConfig(options: LoadConfigOptions): Promise<Config> {
  const file = findFile(options.file, options.directory ?? process.cwd());
  const directory = dirname(file);
  const document = readJsonc(readText(file));
  if (document.value === undefined) throw new ConfigError(document.problems, file);

  options.onRead?.(document);
  const warnings: ConfigProblem[] = [];
  const secrets = resolveKnownSecrets(document.value, { env: options.env, directory });
  const sections = parseSections(secrets.value);
  const problems = [...document.problems, ...secrets.problems, ...sections.problems];
  warnings.push(...secrets.warnings);

  const config = sections.parsed && createConfig(sections.parsed, { file, directory });
  if (config !== undefined) {
    const found = await runChecks([findContradictions, ...(options.checks ?? [])], config, {
      known: problems,
      originalPath: sections.originalPath,
    });
    problems.push(...found);
    warnings.push(...findWarnings(config));
  }
  if (problems.length > 0) throw new ConfigError(inOrder(firstOfEach(problems), document), file);
  if (config === undefined) throw new TypeError('a configuration without problems has sections');
  for (const warning of warnings) options.onWarning?.(warning);
  return config;
}

/** One problem of each setting: what else is wrong with it may follow from the first. */
function firstOfEach(problems: readonly ConfigProblem[]): ConfigProblem[] {
  const bySetting = Map.groupBy(problems, ({ path }) => path || Symbol('file'));
  return [...bySetting.values()].flatMap(([first]) => first ?? []);
}

/** Problems where they are in the file and in that order. */
export function inOrder(
  problems: readonly ConfigProblem[],
  { positionOf }: ConfigPlaces,
): ConfigProblem[] {
  return problems
    .map((problem) => ({ position: positionOf(problem.path), ...problem }))
    .toSorted(
      ({ position: a }, { position: b }) =>
        (a?.line ?? 0) - (b?.line ?? 0) || (a?.column ?? 0) - (b?.column ?? 0),
    );
}

function findFile(file: string | undefined, directory: string): string {
  if (file !== undefined) return resolve(directory, file);
  const names = ['hub.config.json', 'hub.config.example.json'];
  const found = names.map((name) => resolve(directory, name)).find((path) => existsSync(path));
  if (found !== undefined) return found;
  const message = `does not exist; make one with: ${hubCommand('init')}`;
  throw new ConfigError([{ path: '', message }], resolve(directory, 'hub.config.json'));
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new ConfigError([{ path: '', message: `cannot be read: ${reasonOf(error)}` }], file);
  }
}

function createConfig(
  sections: ParsedSections,
  { file, directory }: { file: string; directory: string },
): Config {
  const { Hub, pluginSections } = sections;
  const {
    services,
    acme,
    backup,
    cookie_secret,
    database_url,
    keyv_url,
    instance_url,
    public_url,
    proxy_api,
    tracing,
    ...hub
  } = Hub;
  const basePath = withSlash(new URL(Hub.bind_url).pathname);
  const publicUrl = publicUrlOf(Hub, basePath);
  return deepFreeze({
    Hub: {
      ...hub,
      database_url: asText(database_url),
      acme: acme && {
        ...acme,
        email: acme.email === undefined ? undefined : asText(acme.email),
        external_account: acme.external_account && {
          id: acme.external_account.id,
          key: asSecret(acme.external_account.key),
        },
      },
      backup: backup && {
        ...backup,
        passphrase: backup.passphrase === undefined ? undefined : asSecret(backup.passphrase),
      },
      proxy_api: proxy_api && {
        bind_url: proxy_api.bind_url,
        auth_token: asSecret(proxy_api.auth_token),
        host: proxy_api.host,
      },
      tracing: tracing && {
        ...tracing,
        headers: Object.fromEntries(
          Object.entries(tracing.headers).map(([name, value]) => [name, asSecret(value)]),
        ),
      },
      ...(keyv_url !== undefined && { keyv_url: asText(keyv_url) }),
      ...(instance_url !== undefined && { instance_url: asText(instance_url) }),
      ...(public_url !== undefined && { public_url: asText(public_url) }),
      cookie_secret: cookie_secret === undefined ? undefined : [cookie_secret].flat().map(asSecret),
      services: [
        ...services.map(({ api_token, ...service }) => ({
          ...service,
          ...(api_token !== undefined && { api_token: asSecret(api_token) }),
        })),
        ...routeServices(sections.Proxy.extra_routes, { basePath, publicUrl }),
      ],
    },
    Authenticator: sections.Authenticator,
    Spawner: sections.Spawner,
    Proxy: sections.Proxy,
    authenticators: listEntries(Hub.authenticator_class),
    spawners: listEntries(sections.Spawner.class),
    hooks: listEntries(sections.Spawner.hooks),
    pluginSections,
    directory,
    file,
    publicUrl,
    connectUrl: new URL(Hub.hub_connect_url ?? Hub.hub_bind_url),
    subdomainHost: parseSubdomainHost(Hub.subdomain_host),
    loginLifetimeSeconds: Math.round(Hub.cookie_max_age_days * secondsPerDay),
    basePath,
  });
}

type ConfiguredClasses =
  | z.output<typeof hubSection>['authenticator_class']
  | z.output<typeof spawnerSection>['class' | 'hooks'];

function listEntries(configured: ConfiguredClasses): AuthenticatorEntry[] {
  return [configured].flat().map((entry) => {
    if (typeof entry === 'string') return { class: entry, name: entry, options: {} };
    const { class: className, name = className, ...options } = entry;
    return { class: className, name, options };
  });
}

/** What users type in the address bar: public_url, or else the address the gateway listens on. */
function publicUrlOf(hub: z.output<typeof hubSection>, basePath: string): URL {
  // A contradiction of its own: browsers do not come by a socket.
  const bound = socketPathOf(hub.bind_url) === undefined ? hub.bind_url : 'http://localhost/';
  const url = new URL(asText(hub.public_url ?? bound));
  if (hub.public_url === undefined && isWildcard(url.hostname)) url.hostname = '127.0.0.1';
  url.pathname = basePath;
  url.search = '';
  url.hash = '';
  return url;
}

function asSecret(value: unknown): Secret {
  return new Secret(asText(value));
}

function asText(value: unknown): string {
  if (typeof value !== 'string') throw new TypeError('a reference was left unresolved');
  return value;
}

function withSlash(pathname: string): string {
  return pathname.endsWith('/') ? pathname : `${pathname}/`;
}

function deepFreeze<Value>(value: Value): Value {
  const isPlain =
    Array.isArray(value) || Object.prototype.toString.call(value) === '[object Object]';
  if (typeof value !== 'object' || value === null || !isPlain) return value;
  for (const child of Object.values(value)) deepFreeze(child);
  return Object.freeze(value);
}
