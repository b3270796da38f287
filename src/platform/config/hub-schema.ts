import { z } from 'zod';
import { acmeSection } from './acme-schema.ts';
import { backupSection } from './backup-schema.ts';
import { normaliseBindUrl, socketPathOf, socketPathProblem } from './bind-address.ts';
import { brandingSettings } from './branding-schema.ts';
import {
  bindUrl,
  count,
  httpUrl,
  isBindUrl,
  orReference,
  seconds,
  secretReference,
  secretUrl,
  serverNamePattern,
} from './common-schema.ts';
import { languageSettings, localizedText } from './language-schema.ts';
import { serviceSchema } from './service-schema.ts';
import { tlsSettings } from './tls-schema.ts';
import { tracingSection } from './tracing-schema.ts';

/** How many entries a page of a list has; beyond this an answer is too large for those who wait behind it. */
const pageLength = z.int().min(1).max(10_000);

/** One entry of `Hub.load_roles`. */
const roleSchema = z.strictObject({
  name: z.string().describe('Name of the role; a default role of that name is replaced.'),
  description: z.string().optional().describe('What it is for, in words.'),
  scopes: z.array(z.string()).optional().describe('Permissions of this role.'),
  users: z.array(z.string()).optional().describe('Users who hold it.'),
  groups: z.array(z.string()).optional().describe('Groups whose members hold it.'),
  services: z.array(z.string()).optional().describe('Services that hold it.'),
});

/** One entry of `Hub.load_groups`. */
const groupSchema = z.strictObject({
  name: z.string().min(1).max(255).describe('Name of the group.'),
  users: z.array(z.string()).default([]).describe('Its members.'),
  properties: z.record(z.string(), z.unknown()).default({}).describe('Arbitrary data of your own.'),
});

const customScopeSchema = z.strictObject({
  description: z.string().min(1).describe('For the consent page: what the scope allows.'),
  subscopes: z.array(z.string()).default([]).describe('Custom scopes that it implies.'),
});

/** A plugin's name with options of its own. */
const authenticatorObject = z.looseObject({
  class: z.string().min(1).describe('Name of the plugin; the other keys are its options.'),
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]*$/, 'may hold a-z, 0-9 and hyphens')
    .optional()
    .describe('Name of this login method, in URLs and logs; the class by default.'),
});

/** An entry of `Hub.authenticator_class`. */
const authenticatorReference = z.union([z.string().min(1), authenticatorObject]);

const publicBindUrl = z.string().transform((text, context) => {
  const url = normaliseBindUrl(text);
  const path = socketPathOf(url);
  const problem = path === undefined ? undefined : socketPathProblem(path);
  if (problem === undefined && isBindUrl(url, /^(?:https?|http\+unix):$/)) return url;
  const message =
    problem ??
    'is not an http:// or https:// URL without query or fragment, such as http://127.0.0.1:8000/, nor a socket, such as unix:///run/hub/hub.sock';
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
});

/** Whether a URL is no more than scheme, host and port. */
const notAnOrigin = 'is not an origin, such as http://10.0.0.5:8080: no user, path or query';

function isOrigin(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && [`${url.origin}/`, url.origin].includes(text);
}

/** Characters of what is announced to all users. */
export const maxAnnouncementLength = 2_000;
export const announcementLevels = ['info', 'warning'] as const;
/** Pages that can be told apart: an announcement may stand on some of them alone. */
export const announcedPages = ['login', 'home', 'spawn', 'logout'] as const;

const announcementText = z.string().max(maxAnnouncementLength);
// Empty, it says that there is none; in a language it says nothing.
const announcement = localizedText(announcementText, announcementText.min(1)).optional();

export const hubSection = z.strictObject({
  bind_url: publicBindUrl
    .prefault('http://127.0.0.1:8000/')
    .describe(
      'Where the public gateway listens; its path is the base URL of everything. With acme it is https://0.0.0.0:443/ by default. At an https:// address, such as https://0.0.0.0:443/, it has TLS with certificates. On a Unix socket for a reverse proxy: unix:///run/hub/hub.sock, or with a base URL http+unix://%2Frun%2Fhub%2Fhub.sock/team/.',
    ),
  bind_socket_mode: z
    .string()
    .regex(/^0?[0-7]{3}$/, 'is not a file mode such as 0660')
    .default('0660')
    .describe('File mode of the Unix socket. Whatever can open it is a trusted proxy.'),
  ...tlsSettings,
  hub_bind_url: z
    .string()
    .refine(
      (text) => isBindUrl(text, /^https?:$/),
      'is not an http:// or https:// URL without query or fragment, such as http://127.0.0.1:8080/',
    )
    .default('http://127.0.0.1:8080')
    .describe('Internal address, where servers and services reach the API directly.'),
  proxy_api: z
    .strictObject({
      bind_url: bindUrl
        .default('http://127.0.0.1:8001')
        .describe('Address of that API; only the JupyterHub should reach it.'),
      auth_token: secretReference.describe(
        'The token JupyterHub authenticates with: its ConfigurableHTTPProxy.auth_token.',
      ),
      host: z
        .string()
        .regex(/^[a-z0-9-]+(\.[a-z0-9-]+)*$/, 'is not a host name in lower case, without port')
        .optional()
        .describe(
          "Host name reserved for its routes. Without one they share the hub's host, and the JupyterHub needs its own base_url.",
        ),
    })
    .optional()
    .describe(
      'Offers the API of configurable-http-proxy, so that a JupyterHub can use the hub as its proxy.',
    ),
  hub_connect_url: z
    .string()
    .refine((text) => {
      const url = URL.parse(text);
      return /^https?:$/.test(url?.protocol ?? '') && url?.search === '' && url.hash === '';
    }, 'is not an http(s) URL without query or fragment, such as http://10.0.0.5:8080')
    .optional()
    .describe(
      'API address passed to servers and services (HUB_API_URL); hub_bind_url by default. Required when hub_bind_url ' +
        'is a wildcard such as http://0.0.0.0:8080, or servers run on other machines.',
    ),
  public_url: orReference(httpUrl, 'is not an http(s) URL')
    .optional()
    .describe('How browsers reach the hub. Redirects, callbacks and Secure cookies follow it.'),
  acme: acmeSection.optional(),
  backup: backupSection.optional(),
  tracing: tracingSection.optional(),
  subdomain_host: z
    .string()
    .refine((text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ''), 'is not an http(s) URL')
    .optional()
    .describe(
      "Gives each user's servers and each service an origin of its own below this one: https://hub.example.org leads to https://<user>.hub.example.org. Needs wildcard DNS and a wildcard certificate. Without it everything shares the origin of public_url.",
    ),
  instance_name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'may hold letters, digits and . _ - only')
    .optional()
    .describe(
      'Name of this hub among several on one PostgreSQL database: unique, and the same after a restart. The host name by default.',
    ),
  instance_url: orReference(httpUrl.refine(isOrigin, notAnOrigin), notAnOrigin)
    .optional()
    .describe(
      'Where the other hubs on the database reach this one\'s hub_bind_url, such as http://10.0.0.5:8080, to forward visitors to servers and services that listen on its loopback interface. hub_bind_url by default. {"env": "NAME"} reads it from the environment, for containers that share one file.',
    ),
  database_url: secretUrl(
    /^(sqlite:.|postgres(ql)?:\/\/)/,
    'must begin with sqlite: and a file, or with postgresql://',
  )
    .default('sqlite:hub.sqlite')
    .describe(
      'sqlite:<path> (sqlite::memory: for tests) or postgresql://…. Of several hosts, as in postgresql://hub@db1,db2:5433/hub, the first that takes writes is used, as with target_session_attrs=read-write.',
    ),
  keyv_url: secretUrl(
    /^(sqlite:.|postgres(ql)?:\/\/|rediss?:\/\/)/,
    'must begin with redis://, postgresql:// or sqlite:',
  )
    .optional()
    .describe('Store for expiring state; the database by default.'),
  cookie_secret: z
    .union([secretReference, z.array(secretReference).min(1)])
    .optional()
    .describe('Cookie encryption key, or a list of them: the first encrypts, all decrypt.'),
  cookie_secret_file: z
    .string()
    .default('hub_cookie_secret')
    .describe('File in which a key is generated when cookie_secret is not set.'),
  cookie_max_age_days: z
    .number()
    .positive()
    .default(14)
    .describe('Lifetime of login and token cookies.'),
  oauth_token_expires_in: z
    .int()
    .positive()
    .optional()
    .describe('Lifetime of OAuth access tokens in seconds; the cookie lifetime by default.'),
  command_line_login: z
    .boolean()
    .default(true)
    .describe('Whether users may log in from the command line of other machines with `hub login`.'),
  client_documents: z
    .enum(['public', 'any', 'none'])
    .default('public')
    .describe(
      'Which agents may use the https URL of a client metadata document as client id, without registration: those on hosts with public addresses, any, or none. Users are always asked, and grant access to one service or server at a time.',
    ),
  token_expires_in_max_seconds: count
    .default(0)
    .describe('Maximum lifetime of API tokens, in seconds; 0 for no limit.'),
  authenticator_class: z
    .union([z.string().min(1), authenticatorObject, z.array(authenticatorReference).min(1)])
    .default('password')
    .describe('How users log in: one plugin, or several in the order the login page shows them.'),
  services: z.array(serviceSchema).default([]).describe('Services behind the gateway.'),
  allow_managed_services_at_runtime: z
    .boolean()
    .default(false)
    .describe(
      'Whether administrators may add managed services over the API. The hub runs their commands under its own account, or any account it may switch to, so every administrator can then do whatever the hub itself can.',
    ),
  load_roles: z.array(roleSchema).default([]).describe('Roles and who holds them.'),
  load_groups: z.array(groupSchema).default([]).describe('Groups and their members.'),
  custom_scopes: z
    .record(z.string(), customScopeSchema)
    .default({})
    .describe('Scopes of your own services; names begin with custom:.'),
  environment_prefixes: z
    .array(z.string().regex(/^[A-Z][A-Z0-9_]*$/))
    .min(1)
    .default(['HUB'])
    .describe('Variables of servers and services are set once per prefix.'),
  plugins_dir: z
    .string()
    .default('plugins')
    .describe('Plugins in this folder can be used by name.'),
  gateways: count
    .default(0)
    .describe(
      'Gateway processes that serve bind_url and outlive the hub; with 0 the hub serves it itself.',
    ),
  gateway_linger: seconds
    .default(60)
    .describe(
      'Seconds that gateways wait for a new hub after theirs was terminated or died; 0 ends them with it.',
    ),
  trusted_proxies: z
    .array(z.string())
    .default([])
    .describe('Addresses or CIDR ranges whose X-Forwarded-* headers are believed.'),
  trust_forwarded_host: z
    .boolean()
    .default(false)
    .describe(
      "Whether to take the requested host from a trusted proxy's X-Forwarded-Host instead of Host. Only for a proxy that replaces what clients send in that header. Without it, requests in which the two differ are refused.",
    ),
  cleanup_servers: z.boolean().default(false).describe("Stop users' servers when the hub stops."),
  allow_named_servers: z
    .boolean()
    .default(false)
    .describe('Whether users may have several servers.'),
  named_server_limit_per_user: count
    .default(50)
    .describe('Maximum named servers per user; 0 for no limit.'),
  api_token_limit_per_user: count
    .default(100)
    .describe('Maximum tokens per user, created on the pages or over the API; 0 for no limit.'),
  signing_key_days: z
    .int()
    .positive()
    .default(90)
    .describe('Days after which the keys that sign ID tokens are replaced by new ones.'),
  session_limit_per_user: count
    .default(100)
    .describe(
      'Maximum concurrent logins per user; one more ends the least recently used. 0 for no limit.',
    ),
  concurrent_spawn_limit: count.default(100).describe('Servers starting at once; 0 for no limit.'),
  active_server_limit: count
    .default(0)
    .describe('Maximum servers running at once; 0 for no limit.'),
  api_page_default_limit: pageLength
    .default(50)
    .describe('Default page size of API lists, for clients that ask for pages without a limit.'),
  api_page_max_limit: pageLength
    .default(200)
    .describe('Maximum page size of API lists, also used when the client asks for nothing.'),
  authenticate_prometheus: z
    .boolean()
    .default(true)
    .describe('Whether /hub/metrics needs a token with the scope read:metrics.'),
  default_server_name: z
    .string()
    .regex(serverNamePattern, 'use a-z, 0-9 and single hyphens, a letter first, at most 30')
    .optional()
    .describe(
      'Named server that /hub/user-redirect/ and redirect_to_server lead to; needs allow_named_servers. The default server if not set.',
    ),
  redirect_to_server: z
    .boolean()
    .default(false)
    .describe(
      "Whether the base URL, and logins without a target, lead to the user's own server instead of the home page; to its start page while it is stopped.",
    ),
  implicit_spawn_seconds: seconds
    .default(0)
    .describe(
      "Seconds after which a stopped server's page starts it by itself; 0 waits for the button. Never after a failed start.",
    ),
  default_url: z
    .string()
    .startsWith('/')
    .optional()
    .describe('Where the base URL, and logins without a target, lead.'),
  shutdown_on_logout: z
    .boolean()
    .default(false)
    .describe("Stop a user's servers when the user logs out."),
  shutdown_timeout: seconds
    .default(30)
    .describe('Seconds a shutdown waits for requests in flight.'),
  log_level: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal'])
    .default('info')
    .describe('Minimum level of messages that are logged.'),
  log_format: z
    .enum(['auto', 'json', 'text'])
    .default('auto')
    .describe('Format of log lines; auto is text on a terminal and JSON elsewhere.'),
  log_time_format: z
    .enum(['iso8601', 'epoch_ms'])
    .default('iso8601')
    .describe('Time in JSON log lines: ISO 8601 in UTC, or milliseconds since 1970.'),
  log_level_format: z
    .enum(['name', 'number'])
    .default('name')
    .describe('Level in JSON log lines: a name such as info, or its number such as 30.'),
  log_dir: z
    .string()
    .default('logs')
    .describe('Folder for the output of services and servers. Hubs must not share one.'),
  audit_retention_days: count
    .default(365)
    .describe('Days that audit entries are kept; 0 keeps them forever.'),
  audit_max_rows: count
    .default(5_000_000)
    .describe(
      'Maximum rows of the audit log; the oldest are deleted first, so that nobody can fill the disk. 0 for no limit.',
    ),
  audit_file: z
    .string()
    .min(1)
    .optional()
    .describe(
      'File that audit entries are also appended to, one JSON object per line. It may be rotated at any time.',
    ),
  announcement: z
    .union([
      announcementText,
      z.strictObject({
        text: localizedText(announcementText.min(1)),
        level: z.enum(announcementLevels).default('info'),
        pages: z.array(z.enum(announcedPages)).min(1).optional(),
        until: z.iso.datetime({ offset: true }).optional(),
      }),
    ])
    .optional()
    .describe(
      'Text on every page, such as when the hub is down for maintenance; or an object with `text` (for all readers, or in languages: `{"en": "…", "de": "…"}`), `level` (`info` or `warning`), `pages` (of `login`, `home`, `spawn`, `logout`) and `until`, as 2026-01-31T18:00:00Z. Line breaks are kept, markup is shown as it is. An announcement made on Admin → Announcements or over the API replaces it.',
    ),
  announcement_login: announcement.describe(
    'Replaces announcement on the login page; a text, or an object with one per language.',
  ),
  announcement_home: announcement.describe('Replaces announcement on the home page.'),
  announcement_spawn: announcement.describe(
    'Replaces announcement on the pages that start servers.',
  ),
  announcement_logout: announcement.describe(
    'Replaces announcement on the page shown after logout.',
  ),
  title: localizedText(z.string().min(1))
    .default('Hub')
    .describe(
      'Name shown on every page, or an object with one per language. Where only one is possible, as in an authenticator app, it is that of `Hub.language`.',
    ),
  accent_color: z
    .string()
    .regex(/^#[0-9a-fA-F]{6}$/, 'is not a colour such as #2457d6')
    .optional()
    .describe('Colour of primary buttons and links.'),
  ...languageSettings,
  ...brandingSettings,
});
