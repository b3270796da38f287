import { z } from 'zod';
import { byteSize, command, cores, count, environment, seconds } from './common-schema.ts';
import { extraRoutes } from './extra-route-schema.ts';
import { localizedText } from './language-schema.ts';
import { rescueKeys } from './rescue-schema.ts';
import { profileAccessKeys, serverAccessKeys } from './server-access-schema.ts';
import { startAheadKeys } from './start-times-schema.ts';
import { timeLimitKeys } from './time-limits-schema.ts';
import { budgetsSchema, pricesSchema, profilePricesSchema } from './usage-schema.ts';

const names = z.array(z.string().min(1)).default([]);

export const authenticatorSection = z.strictObject({
  admin_users: names.describe('Users who are administrators. Their accounts exist from the start.'),
  allowed_users: names.describe('Users who may log in. Their accounts exist from the start.'),
  account_authenticator: z
    .string()
    .min(1)
    .optional()
    .describe(
      'With several authenticators, the one for accounts created before their first login: admin_users, allowed_users, members of groups and roles, users added by administrators. By default the one that stores passwords.',
    ),
  allow_all: z
    .boolean()
    .default(false)
    .describe('Whether everyone who can authenticate may log in.'),
  blocked_users: names.describe('Users who may not log in, whatever else allows them.'),
  username_map: z
    .record(z.string(), z.string())
    .default({})
    .describe('Renames users, at login and when accounts are created.'),
  username_pattern: z
    .string()
    .refine(isPattern, 'is not a regular expression')
    .default('')
    .describe(
      'Regular expression that the whole name of every user must match, however the account is made.',
    ),
  auto_login: z.boolean().default(false).describe('Go straight to the only external provider.'),
  separate_callbacks: z
    .boolean()
    .default(false)
    .describe(
      'Give each external provider a redirect URI of its own, `<public_url>hub/oauth_callback/<name>`, so that none ' +
        'gets a code of another (mix-up, RFC 9700 §4.4). Register these at the providers before.',
    ),
  auth_refresh_age: seconds
    .default(300)
    .describe('Seconds between two calls of refresh_user; 0 turns it off.'),
  refresh_pre_spawn: z
    .boolean()
    .default(false)
    .describe('Refresh the user before a server starts.'),
  refresh_pre_stop: z
    .boolean()
    .default(false)
    .describe(
      'Refresh the user before a server is stopped. Users whose login has ended at the provider must log in again to stop their own server; others, such as administrators and cullers, can still stop it.',
    ),
  refresh_grace: seconds
    .default(3600)
    .describe('Seconds an existing login stays valid while its provider cannot be reached.'),
  enable_auth_state: z
    .boolean()
    .default(false)
    .describe('Keep what the provider returned, encrypted.'),
  manage_groups: z
    .boolean()
    .default(false)
    .describe('Whether the provider decides group membership.'),
  manage_roles: z
    .boolean()
    .default(false)
    .describe('Whether the provider decides role assignment.'),
  lockout_attempts: z.int().positive().default(5).describe('Failed logins before a delay begins.'),
  lockout_delay: seconds
    .default(30)
    .describe('First delay in seconds; it doubles with each failure.'),
  lockout_max_delay: seconds.default(900).describe('Longest delay in seconds.'),
  recent_login_seconds: seconds
    .default(600)
    .describe(
      'Seconds for which a login counts as recent. After that, users confirm who they are before actions that would outlive a stolen session, such as new tokens, linked accounts and changes of rights; 0 never asks.',
    ),
  require_second_factor: z
    .union([z.boolean(), z.strictObject({ groups: names, roles: names })])
    .default(false)
    .describe(
      'Who needs a second factor: true for every user, or {"groups": […], "roles": […]} for members of these groups and holders of these roles (administrators hold the role admin). A login without one leads only to its setup. A login at a provider counts if the provider says that it required one.',
    ),
  second_factor_elsewhere: names.describe(
    'Authenticators whose logins always count as having a second factor, because their provider requires one.',
  ),
  concurrent_logins: z
    .int()
    .positive()
    .default(8)
    .describe('Password checks that may run at once; more wait in a queue for up to 20 seconds.'),
  max_pending_logins: z
    .int()
    .positive()
    .default(500)
    .describe('Logins in progress at once, queued ones included; more get 429.'),
});

const volumeSchema = z.strictObject({
  source: z
    .string()
    .min(1)
    .describe(
      'An absolute path on the machine, or the name of a volume. {username} and {server} are replaced so that no two users share one; separate them with "_", "--" or a slash.',
    ),
  sub_path: z
    .string()
    .min(1)
    .refine(
      (path) => path.split('/').every((name) => !['', '.', '..'].includes(name)),
      'is not a path within the volume, such as home/{username}',
    )
    .optional()
    .describe(
      'Folder within the volume to mount instead of all of it; {username} and {server} as in source. Kubernetes only.',
    ),
  target: z.string().startsWith('/').describe('Mount path in the server.'),
  read_only: z.boolean().default(false).describe('Whether it is mounted read-only.'),
});

const processes = z.int().positive();

/** A spawner plugin's name with options of its own. */
const spawnerObject = z.looseObject({
  class: z.string().min(1).describe('Name of the plugin; the other keys are its options.'),
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]*$/, 'may hold a-z, 0-9 and hyphens')
    .optional()
    .describe('Name of this spawner, for profiles; the class by default.'),
});

/** The name of a hook with options of its own. */
const hookObject = z.looseObject({
  class: z.string().min(1).describe('Name of the plugin; the other keys are its options.'),
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]*$/, 'may hold a-z, 0-9 and hyphens')
    .optional()
    .describe('Name of this hook, in messages; the class by default.'),
});

const profileSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]*$/)
    .describe('Name in requests and stored options.'),
  display_name: localizedText(z.string())
    .optional()
    .describe('Name on the page, or an object with one for each language.'),
  description: localizedText(z.string())
    .default('')
    .describe('What it is good for, on the page, or an object with one for each language.'),
  cmd: command.optional().describe('In place of Spawner.cmd.'),
  args: z.array(z.string()).optional().describe('In place of Spawner.args.'),
  environment: environment.optional().describe('Added to Spawner.environment.'),
  default_url: z.string().optional().describe('In place of Spawner.default_url.'),
  mem_limit: byteSize.optional().describe('In place of Spawner.mem_limit.'),
  mem_guarantee: byteSize.optional().describe('In place of Spawner.mem_guarantee.'),
  cpu_limit: cores.optional().describe('In place of Spawner.cpu_limit.'),
  cpu_guarantee: cores.optional().describe('In place of Spawner.cpu_guarantee.'),
  gpu_limit: count.optional().describe('In place of Spawner.gpu_limit.'),
  prices: profilePricesSchema,
  process_limit: processes.optional().describe('In place of Spawner.process_limit.'),
  volumes: z.array(volumeSchema).optional().describe('In place of Spawner.volumes.'),
  idle_timeout_seconds: seconds.optional().describe('In place of Spawner.idle_timeout_seconds.'),
  max_age_seconds: seconds.optional().describe('In place of Spawner.max_age_seconds.'),
  options: z
    .record(z.string(), z.unknown())
    .optional()
    .describe('Spawner options for this profile only, such as an image or a partition.'),
  spawner: z
    .string()
    .min(1)
    .optional()
    .describe('Name of the spawner among those of Spawner.class; the first one by default.'),
  ...profileAccessKeys,
  groups: z
    .array(z.string().min(1))
    .min(1)
    .optional()
    .describe('Only members of these groups are offered this choice; all users by default.'),
  default: z.boolean().default(false).describe('Whether it is preselected.'),
});

export const spawnerSection = z.strictObject({
  class: z
    .union([z.string().min(1), z.array(z.union([z.string().min(1), spawnerObject])).min(1)])
    .default('local-process')
    .describe(
      "The spawner plugin, or a list of several, each optionally with its own options on top of its section's. Profiles choose one; servers without a profile use the first.",
    ),
  cmd: command
    .optional()
    .describe(
      "Command of a user's server; {username}, {server} (the name of a named server), {prefix} (its path, such as /user/ann/), {base_url} (the whole address of that) and {directory} (the folder of this file) are replaced. So are {ip} and {port}, where it is to listen, and with local-process {socket}, a Unix socket that only its account and the hub reach.",
    ),
  args: z
    .array(z.string())
    .default([])
    .describe('Arguments after cmd; the same is replaced as in cmd.'),
  environment: environment
    .default({})
    .describe('Extra environment variables of every server; the same is replaced as in cmd.'),
  env_keep: z
    .array(z.string())
    .default([
      'PATH',
      'LANG',
      'LC_ALL',
      'TZ',
      'LD_LIBRARY_PATH',
      'PYTHONPATH',
      'VIRTUAL_ENV',
      'CONDA_ROOT',
      'CONDA_DEFAULT_ENV',
    ])
    .describe("Variables of the hub's own environment that are passed to servers."),
  default_url: z.string().default('').describe('Page of the server that a user lands on.'),
  start_timeout: seconds.default(60).describe('Seconds a server has to start.'),
  http_timeout: seconds.default(30).describe('Seconds a started server has to respond over HTTP.'),
  poll_interval: seconds.default(30).describe('Seconds between two polls of a running server.'),
  slow_start_timeout: seconds
    .default(10)
    .describe('Seconds the API waits for a server to start before it answers 202 in place of 201.'),
  slow_stop_timeout: seconds
    .default(10)
    .describe('Seconds the API waits for a server to stop before it answers 202 in place of 204.'),
  stop_timeout: seconds.default(10).describe('Seconds between SIGTERM and SIGKILL.'),
  ...startAheadKeys,
  ...rescueKeys,
  ...timeLimitKeys,
  ...serverAccessKeys,
  mem_limit: byteSize.optional().describe('Memory limit of a server.'),
  mem_guarantee: byteSize.optional().describe('Memory reserved for a server, if supported.'),
  cpu_limit: cores
    .optional()
    .describe('CPU limit of a server, in cores. Passed to the server as well, like mem_limit.'),
  cpu_guarantee: cores.optional().describe('Cores reserved for a server, if supported.'),
  gpu_limit: count.optional().describe('GPUs of a server.'),
  prices: pricesSchema,
  budgets: budgetsSchema,
  process_limit: processes.optional().describe('Maximum processes and threads per server.'),
  volumes: z
    .array(volumeSchema)
    .default([])
    .describe('Storage mounted into servers; not for local-process.'),
  ip: z.string().default('127.0.0.1').describe('Address on which servers listen.'),
  socket: z.boolean().default(false).describe('Whether servers listen on a Unix socket.'),
  system_user: z
    .string()
    .optional()
    .describe(
      "System user that a server runs as; the hub must be allowed to switch accounts. {username} is replaced by the user's account name, which is fixed at first use and survives a rename.",
    ),
  create_system_users: command
    .optional()
    .describe(
      'Command with which the hub, as root, creates a missing system_user, such as ["useradd", "--create-home", "{account}"]; {account} is replaced by its name.',
    ),
  allowed_system_users: z
    .array(z.union([z.string().min(1), z.int().positive()]))
    .default([])
    .describe(
      'Accounts below UID_MIN of /etc/login.defs, by name or id, that servers may still run as; never root.',
    ),
  home_dir: z
    .string()
    .default('homes/{username}')
    .describe('Working folder of a server; {username} as in system_user. Created when missing.'),
  hooks: z
    .array(z.union([z.string().min(1), hookObject]))
    .default([])
    .describe(
      'Plugins that run before each start of a server, in this order, and after each stop, in reverse order.',
    ),
  hook_timeout: seconds.default(30).describe('Timeout of each hook, in seconds.'),
  profiles: z.array(profileSchema).default([]).describe('Choices offered at server start.'),
  oauth_client_allowed_scopes: z
    .array(z.string())
    .default([])
    .describe('Scopes a server may request from visitors, beyond identity and access to itself.'),
  server_token_scopes: z
    .array(z.string())
    .default([])
    .describe("Scopes of the server's own token."),
});

export const proxySection = z.strictObject({
  extra_routes: extraRoutes,
  forward_auth_headers: z
    .enum(['forwarded', 'original'])
    .default('forwarded')
    .describe(
      'Headers in which another proxy describes the request it asks about (`"access": "forward-auth"`): X-Forwarded-Method, X-Forwarded-Host and X-Forwarded-Uri as sent by Caddy and Traefik, or X-Original-Method and X-Original-URL. If the other kind is present, which a visitor may have sent, it must agree or the request is refused.',
    ),
  access_log: z
    .union([z.boolean(), z.number().min(0).max(1)])
    .default(true)
    .describe(
      'Whether requests to servers and services are logged; a number such as 0.1 logs that share of them.',
    ),
  headers_timeout: seconds
    .default(30)
    .describe('Seconds a client has to send its request headers.'),
  request_timeout: seconds
    .default(0)
    .describe('Seconds a client has to send a whole request; 0 for no limit.'),
  client_body_timeout: seconds
    .default(60)
    .describe('Seconds a client has to send another KiB of a body; 0 for no limit.'),
  client_read_timeout: seconds
    .default(300)
    .describe('Seconds a client has to read more of a pending response; 0 for no limit.'),
  idle_timeout: seconds.default(75).describe('Seconds an unused client connection stays open.'),
  connect_timeout: seconds.default(10).describe('Seconds to connect to an upstream.'),
  reconnect_timeout: seconds
    .default(3)
    .describe(
      'Seconds a request waits for an upstream that worked a moment ago but refuses connections now.',
    ),
  upstream_timeout: seconds
    .default(300)
    .describe(
      'Seconds an upstream has to start its response once it has the request; 0 for no limit. Responses in progress, such as downloads and event streams, may take as long as they like.',
    ),
  body_timeout: seconds
    .default(0)
    .describe('Maximum seconds between two chunks of a response; 0 for no limit.'),
  upstream_idle_timeout: seconds
    .default(4)
    .describe('Seconds an unused upstream connection is kept.'),
  max_staleness: z
    .number()
    .min(5)
    .max(300)
    .default(30)
    .describe(
      'Seconds for which admitted visitors stay admitted while PostgreSQL, or from a gateway process the hub, cannot be reached (5 to 300); after that they get 503 until it is back.',
    ),
  max_upstream_connections: z
    .int()
    .positive()
    .default(256)
    .describe('Maximum connections to one upstream.'),
  max_header_size: byteSize.default(16 * 1024).describe('Maximum size of request headers.'),
  max_body_size: byteSize.default(0).describe('Maximum forwarded request body; 0 for no limit.'),
  max_connections_per_address: count
    .default(5_000)
    .describe(
      'Maximum client connections per address (IPv6 /64); 0 for no limit. Each concurrent HTTP/2 request beyond the first counts as one. Does not apply to trusted_proxies.',
    ),
  max_connections: count
    .optional()
    .describe(
      'Maximum client connections in total; 0 for no limit but that of open files, some of which the hub reserves. By default 20,000, or as many as the limit of open files allows.',
    ),
  max_unread_size: byteSize
    .default(64 * 1024 * 1024)
    .describe(
      'Maximum unread data buffered per user, over all responses and WebSockets; without a login, per address. Beyond it connections are cut, starting with the one unread for longest. 0 for no limit.',
    ),
  max_websockets_per_user: count
    .default(200)
    .describe('Maximum open WebSockets per user; 0 for no limit.'),
  websocket_idle_timeout: seconds
    .default(0)
    .describe('Seconds without traffic before a WebSocket is closed; 0 for never.'),
  api_body_size: byteSize.default(1024 * 1024).describe('Maximum body of an API request or form.'),
});

function isPattern(text: string): boolean {
  try {
    new RegExp(text);
    return true;
  } catch {
    return false;
  }
}
