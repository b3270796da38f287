import { z } from 'zod';
import type { Config, TracingConfig } from '../../platform/config/config.ts';
import { forwardingKeys } from '../../platform/config/forwarding-schema.ts';
import { announcementLevels } from '../../platform/config/hub-schema.ts';
import { routeLimits } from '../../platform/config/route-limits-schema.ts';
import { routeRules } from '../../platform/config/route-rules-schema.ts';

/** Form of the feed and of the questions; a gateway and a hub of different forms do not work together. */
export const gatewayProtocol = 5;

const target = z.union([
  z.object({ kind: z.literal('service'), name: z.string() }),
  z.object({ kind: z.literal('server'), userName: z.string(), serverName: z.string() }),
]);

const routeModel = z
  .object({
    prefix: z.string(),
    host: z.string().optional().describe('For which host name alone it is.'),
    origin: z.string().optional().describe('Of browsers there.'),
    strip_prefix: z.boolean().optional(),
    behind_proxy: z
      .boolean()
      .optional()
      .describe('Whether another proxy forwards, and asks about each request.'),
    forwarding: z.object(forwardingKeys).optional(),
    rules: routeRules.optional(),
    limits: routeLimits.optional(),
    target: z.string(),
    access: z.enum(['service', 'server', 'gateway', 'public', 'foreign']),
    owner: z.union([target, z.object({ kind: z.literal('extra') })]),
    server_id: z.string().optional().describe('Of the user’s server.'),
    client_id: z.string().optional().describe('OAuth client of the service or server.'),
    upstream_timeout_ms: z.number().optional(),
    ready: z.boolean(),
    allowed_scopes: z.array(z.string()).describe('What its client may ask visitors for.'),
  })
  .meta({ id: 'GatewayRoute' });

export type GatewayRoute = z.output<typeof routeModel>;

/** A change that takes a right from someone, or adds a user. */
export const rightsChange = z.union([
  z.object({
    kind: z.enum([
      'all',
      'rights_changed',
      'groups_changed',
      'runtime_services_changed',
      'user_added',
    ]),
  }),
  z.object({ kind: z.literal('session_ended'), sessionId: z.string() }),
  z.object({ kind: z.literal('tokens_revoked'), tokenIds: z.array(z.string()) }),
]);

const notice = z.object({
  text: z.union([z.string(), z.record(z.string(), z.string())]),
  until_ms: z.number().optional().describe('When it ends; milliseconds since 1970.'),
});

const noticesModel = z
  .object({
    announcement: notice.extend({ level: z.enum(announcementLevels) }).optional(),
    maintenance: notice
      .extend({ since_ms: z.number().describe('When it begins; milliseconds since 1970.') })
      .optional(),
  })
  .describe('What all users are told on every page.')
  .meta({ id: 'GatewayNotices' });

export type NoticesModel = z.output<typeof noticesModel>;

const certificatesModel = z
  .array(
    z.object({
      origin: z.string(),
      names: z.array(z.string()),
      certificate: z.string().describe('In PEM, with its chain.'),
      key: z.string().describe('In PEM.'),
      notAfter: z.iso.datetime(),
    }),
  )
  .describe('Where the hub ends TLS.');

const revocationListsModel = z
  .array(z.string())
  .optional()
  .describe('In PEM, of the authorities of visitors.');

export type CertificatesModel = z.output<typeof certificatesModel>;

/** What a gateway is run with: the parts of the configuration that concern it, and its own keys. */
export interface GatewaySettings {
  readonly version: string;
  readonly config: GatewayConfig;
  /** Derived for gateways from the keys of the cookies; the first encrypts, all decrypt. */
  readonly secrets: readonly string[];
}

/** Settings that pages and addresses follow from, in hubs and gateways alike. */
export type SiteSetting =
  | 'trusted_proxies'
  | 'trust_forwarded_host'
  | 'environment_prefixes'
  | 'hsts_max_age_days';

/** A part of the configuration that can be written as JSON. */
export interface GatewayConfig {
  readonly Hub: Pick<
    Config['Hub'],
    | SiteSetting
    | 'bind_url'
    | 'http2'
    | 'bind_socket_mode'
    | 'shutdown_timeout'
    | 'gateway_linger'
    | 'log_level'
    | 'log_format'
    | 'log_time_format'
    | 'log_level_format'
  >;
  /** `Hub.tracing`, its secrets as text. */
  readonly tracing?: Omit<TracingConfig, 'headers'> & {
    readonly headers: Readonly<Record<string, string>>;
  };
  readonly Proxy: Config['Proxy'];
  readonly basePath: string;
  readonly publicUrl: string;
  readonly connectUrl: string;
  readonly subdomainHost: string | null;
  /** In PEM. */
  readonly clientAuthorities?: string | undefined;
}

/** An event of the feed. Numbers grow by one with each but a heartbeat, which repeats the last. */
export const feedEvent = z
  .union([
    z.object({
      kind: z.literal('snapshot'),
      number: z.int(),
      protocol: z.int(),
      nonce: z.string().describe('As asked for: an old answer cannot be taken for this one.'),
      settings: z.unknown().describe('Settings and keys of the gateway.'),
      settings_digest: z.string(),
      branding: z
        .unknown()
        .describe(
          'Title, colour, names of files, texts, parts of pages and languages that the operator gave.',
        ),
      now_ms: z
        .number()
        .describe('Time of day by the clock of the hub, in milliseconds since 1970.'),
      notices: noticesModel,
      certificates: certificatesModel.optional(),
      revocation_lists: revocationListsModel,
      routes: z.array(routeModel),
    }),
    z.object({ kind: z.literal('route'), number: z.int(), route: routeModel }),
    z.object({
      kind: z.literal('route_removed'),
      number: z.int(),
      prefix: z.string().describe('After the host name, if the route is for one.'),
    }),
    z.object({ kind: z.literal('change'), number: z.int(), subject: rightsChange }),
    z.object({
      kind: z.literal('look'),
      number: z.int(),
      branding: z.unknown().describe('As in the snapshot.'),
    }),
    z.object({ kind: z.literal('notices'), number: z.int(), notices: noticesModel }),
    z.object({
      kind: z.literal('certificates'),
      number: z.int(),
      certificates: certificatesModel,
      revocation_lists: revocationListsModel,
    }),
    z.object({ kind: z.literal('retire'), number: z.int() }),
    z.object({
      kind: z.literal('heartbeat'),
      number: z.int(),
      at_ms: z.number().optional().describe('As `now_ms`; comes back in the next report.'),
    }),
  ])
  .meta({ id: 'GatewayFeedEvent' });

export type FeedEvent = z.output<typeof feedEvent>;

/** How often a heartbeat comes, and after how long without any event the feed counts as cut. */
export const heartbeatMs = 1_000;
export const silenceMs = 3_000;
