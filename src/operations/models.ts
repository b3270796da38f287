import { z } from 'zod';

/** A point in time. */
export const time = z.iso.datetime();

/** A list of names. */
export const names = z.array(z.string());

/** A whole number in a query. */
export const wholeNumber = z.preprocess(
  (text) => (typeof text === 'string' && /^\d{1,9}$/.test(text) ? Number(text) : text),
  z.int('must be a whole number').min(0),
);

/** A flag in a query: set when it is there, also without a value, unless it says no. */
export const flag = z.preprocess(
  (text) => typeof text === 'string' && !/^(?:0|false|no)$/i.test(text),
  z.boolean(),
);

/** What a login form would be filled in with. */
export const credentials = z.looseObject({
  username: z.string(),
  password: z.string(),
  authenticator: z
    .string()
    .optional()
    .describe('Name of the login method; the first that takes a form, unless given.'),
});

/** The span of a plot in the query of a page. */
export const loadSpan = z.enum(['hour', 'day']).catch('hour');

/** Data of any kind that the hub stores for others. */
export const freeData = z.record(z.string(), z.unknown());

/** What is about to happen to a server. */
const pending = z.enum(['spawn', 'stop']).nullable();

/** A time limit of a server. */
export const limitKind = z.enum(['idle_timeout', 'max_age', 'budget']);

export const serverModel = z
  .object({
    name: z.string().describe('Empty for the default server.'),
    display_name: z.string().nullable(),
    full_name: z.string().describe('`<user>/<server>`.'),
    last_activity: time.nullable(),
    started: time.nullable(),
    pending,
    ready: z.boolean(),
    stopped: z.boolean(),
    unreachable_since: time
      .nullable()
      .describe(
        'Since when the process of the hub that runs it is away, so that nothing is known of it; DELETE gives it up.',
      ),
    url: z
      .string()
      .describe('Path of the server; its whole URL where it has an origin of its own.'),
    full_url: z.string(),
    user_options: freeData
      .optional()
      .describe('In a list of users only with `include_user_options`.'),
    progress_url: z.string().describe('Path of its progress as server-sent events.'),
    full_progress_url: z.string(),
    failure: z
      .object({ message: z.string(), at: time, output: names })
      .nullable()
      .describe('Why the last start failed, if it did.'),
    stops_at: time
      .nullable()
      .describe('When a time limit stops the server, unless it is used until then.'),
    stop_reason: limitKind
      .nullable()
      .describe('The time limit that stops it at `stops_at`, or that has stopped it.'),
    kept_until: time.nullable().describe('Until when its user keeps it running though it is idle.'),
    paused_at: time.nullable().describe('Since when it is paused; the next request lets it go on.'),
    busy_kernels: names
      .optional()
      .describe(
        'Of one server that runs and has `kernels_path`, for who may open it: its notebooks or kernels that calculate, five at most. While there is one, it is not stopped for being idle.',
      ),
    rescue: z
      .boolean()
      .describe('Whether a file browser runs in its place, because its home is full.'),
    state: freeData.optional().describe('Only with `admin:server_state`.'),
  })
  .meta({ id: 'Server' });

export const userInfoModel = z
  .object({
    display_name: z
      .string()
      .nullable()
      .describe('What others read in place of the name. Users choose it; it identifies no one.'),
    email: z.string().nullable(),
    email_verified: z
      .boolean()
      .describe('Whether a login provider or an administrator vouches for the address.'),
    avatar_url: z.string().nullable().describe('https:// URL of a picture.'),
    authenticator: z
      .string()
      .nullable()
      .describe('The authenticator that tells it at each login; null where it is set here.'),
  })
  .meta({ id: 'UserInfo', description: 'Who a user is beside the name; null where unknown.' });

export const userModel = z
  .object({
    kind: z.literal('user'),
    name: z.string(),
    admin: z.boolean().optional().describe('Whether the user is an administrator.'),
    suspended: z.boolean().optional().describe('Whether the user is shut out.'),
    groups: names.optional(),
    roles: names.optional(),
    created: time.optional(),
    last_activity: time.nullable().optional(),
    server: z
      .string()
      .nullable()
      .optional()
      .describe('`url` of the default server while it is ready.'),
    pending: pending.optional(),
    servers: z.record(z.string(), serverModel).optional(),
    user_info: userInfoModel.optional().describe('Only with `read:users:info`.'),
    auth_state: freeData
      .nullable()
      .optional()
      .describe(
        'What the provider of the last login told, secrets among it; of one user, with `admin:auth_state`.',
      ),
  })
  .meta({ id: 'User', description: 'A user, as far as the scopes of the caller show one.' });

export const errorModel = z
  .object({
    status: z.int(),
    code: z.string().describe('What went wrong; never changes its meaning.'),
    message: z.string(),
    hint: z.string().optional().describe('What to do about it.'),
    confirm_url: z
      .url()
      .optional()
      .describe('With `recent_login_required`: the page to open in the same browser.'),
    error_id: z.string().optional().describe('Ties the answer to a line of the log.'),
  })
  .meta({ id: 'Error' });
