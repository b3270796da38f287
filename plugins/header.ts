import { createHash, timingSafeEqual } from 'node:crypto';
import { z } from 'zod';
import type {
  AuthenticatorPlugin,
  LoginRequest,
  OptionProblem,
  PluginSurroundings,
  RequestAuthenticator,
} from '../src/plugin.ts';

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'is not the name of a header')
  .transform((name) => name.toLowerCase());

const optionsSchema = z.strictObject({
  user_header: headerName.default('x-forwarded-user').describe('Header with the user name.'),
  secret: z
    .string()
    .min(16, 'needs at least 16 characters, such as those of: openssl rand -hex 32')
    .optional()
    .describe('What the proxy sends in `secret_header`, so that no other program can name a user.'),
  secret_header: headerName
    // The hub removes such headers before it forwards a request, so no app learns the secret.
    .refine((name) => name.startsWith('x-hub-'), 'must begin with X-Hub-, so that no app sees it')
    .default('x-hub-proxy-secret')
    .describe('Header in which the proxy sends `secret`; begins with X-Hub-.'),
  email_header: headerName.optional().describe('Header with the e-mail address, for display.'),
  groups_header: headerName.optional().describe('Header with the groups of the user.'),
  groups_separator: z.string().min(1).default(',').describe('What stands between two groups.'),
  allowed_groups: z.array(z.string().min(1)).default([]).describe('Groups that may log in.'),
  admin_groups: z.array(z.string().min(1)).default([]).describe('Groups of administrators.'),
  logout_url: z
    .string()
    .refine((text) => /^(\/|https?:\/\/)/.test(text), 'is neither a path nor an http(s) URL')
    .optional()
    .describe("Where the browser goes after logout, to end the proxy's own login."),
  label: z.string().min(1).default('Single sign-on').describe('Name of this way to log in.'),
});

type Options = z.output<typeof optionsSchema>;

/** Headers that anybody can send through any proxy, or that mean something else. */
const unfit = new Set(['authorization', 'cookie', 'host', 'user-agent', 'referer', 'origin']);

/** Believes a reverse proxy that has authenticated the user and says so in a header. */
const plugin: AuthenticatorPlugin<Options, RequestAuthenticator> = {
  kind: 'authenticator',
  name: 'header',
  section: 'HeaderAuthenticator',
  optionsSchema,
  secretOptions: ['secret'],
  findProblems,

  create(options, host) {
    const [problem] = findProblems(options, host);
    if (problem !== undefined) throw new Error(`${problem.option}: ${problem.message}`);
    const { log } = host;
    const secretHash = options.secret === undefined ? undefined : hash(options.secret);
    return {
      login: { kind: 'request', label: options.label },

      ...(options.logout_url === undefined
        ? {}
        : { logoutUrl: () => Promise.resolve(options.logout_url) }),

      async identify(request) {
        const { isTrustedProxy, peerAddress, headers } = request;
        if (headers[options.user_header] === undefined) {
          return { outcome: 'refused', reason: 'credentials' };
        }
        if (!isTrustedProxy) {
          // Not an attack in itself: a client may send what it likes, and is not believed.
          log.warn({ peerAddress }, 'an identity header came from an address that is not trusted');
          return { outcome: 'refused', reason: 'credentials' };
        }
        if (secretHash !== undefined) {
          const sent = headers[options.secret_header];
          if (sent === undefined || !timingSafeEqual(hash(sent), secretHash)) {
            log.warn(
              { peerAddress, header: options.secret_header },
              'an identity header came without the secret of the proxy',
            );
            return { outcome: 'refused', reason: 'credentials' };
          }
        }
        const name = only(request, options.user_header);
        const email = only(request, options.email_header);
        const groupText = only(request, options.groups_header);
        // A proxy between may have joined two headers to one; no user name holds a comma.
        const isJoined = typeof name === 'string' && name.includes(',');
        if (isJoined || name === twice || email === twice || groupText === twice) {
          log.error(
            { peerAddress },
            'an identity header came twice: the proxy must replace what clients send',
          );
          const message = 'The proxy in front of this hub sent contradicting names.';
          return { outcome: 'refused', reason: 'invalid_response', message };
        }
        if (name === undefined) return { outcome: 'refused', reason: 'credentials' };
        const groups = (groupText ?? '')
          .split(options.groups_separator)
          .flatMap((group) => group.trim() || []);
        const isIn = (names: readonly string[]) => names.some((group) => groups.includes(group));
        const { allowed_groups: allowed, admin_groups: admins } = options;
        return {
          outcome: 'authenticated',
          user: {
            name,
            ...(email === undefined ? {} : { display: email }),
            ...(options.groups_header === undefined ? {} : { groups }),
            ...(allowed.length === 0 ? {} : { allowed: isIn(allowed) || isIn(admins) }),
            ...(admins.length === 0 ? {} : { admin: isIn(admins) }),
          },
        };
      },
    };
  },
};

export default plugin;

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

const twice = Symbol('a header that came twice');

/** The one value of a header, as UTF-8; undefined when it did not come or is empty. */
function only(
  { headers }: LoginRequest,
  name: string | undefined,
): string | undefined | typeof twice {
  const value = name === undefined ? undefined : headers[name];
  if (value === undefined) return undefined;
  if (value.includes('\n')) return twice;
  // HTTP reads bytes as Latin-1; proxies send names as UTF-8.
  const bytes = Buffer.from(value, 'latin1');
  const text = bytes.toString('utf8');
  const decoded = text.includes('\uFFFD') ? value : text;
  return decoded.trim() === '' ? undefined : decoded.trim();
}

function findProblems(
  options: Options,
  { trustedLocalAddress }: Pick<PluginSurroundings, 'trustedLocalAddress'>,
): OptionProblem[] {
  const problems: OptionProblem[] = [];
  if (options.secret === undefined && trustedLocalAddress !== undefined) {
    problems.push({
      option: 'secret',
      message:
        `is needed: the hub believes a proxy at ${trustedLocalAddress}, on this machine, so each program ` +
        "here, a user's server among them, could log in as any user. Let the proxy send a secret in " +
        `${options.secret_header}, or listen on a Unix socket (Hub.bind_url) that only the proxy may open`,
    });
  }
  for (const option of ['user_header', 'email_header', 'groups_header', 'secret_header'] as const) {
    const name = options[option];
    if (name !== undefined && unfit.has(name)) {
      problems.push({ option, message: 'is a header that browsers set themselves' });
    }
  }
  for (const option of ['allowed_groups', 'admin_groups'] as const) {
    if (options[option].length > 0 && options.groups_header === undefined) {
      problems.push({ option, message: 'needs groups_header' });
    }
  }
  return problems;
}
