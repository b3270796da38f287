import { createHash, timingSafeEqual } from 'node:crypto';
import type {
  AuthenticationResult,
  AuthenticatorPlugin,
  ClaimedInfo,
  LoginRequest,
  RequestAuthenticator,
} from '../src/plugin/plugin.ts';
import { infoOf, listAt, textAt } from './external/claims.ts';
import { judgeGroups } from './external/group-rules.ts';
import { findProblems, type HeaderOptions, optionsSchema } from './external/header-options.ts';
import { createSignedClaims, type VerifySignedClaims } from './external/signed-header.ts';

/** Believes a reverse proxy that has authenticated the user and says so in a header. */
const plugin: AuthenticatorPlugin<HeaderOptions, RequestAuthenticator> = {
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
    const { jwt_header } = options;
    const verify = jwt_header === undefined ? undefined : createSignedClaims(options, host);
    const identityHeader = jwt_header ?? options.user_header;
    return {
      login: { kind: 'request', label: options.label },

      ...(options.logout_url === undefined
        ? {}
        : { logoutUrl: () => Promise.resolve(options.logout_url) }),

      async identify(request) {
        const { isTrustedProxy, peerAddress, headers } = request;
        if (headers[identityHeader] === undefined) return noCredentials;
        if (!isTrustedProxy) {
          // Not an attack in itself: a client may send what it likes, and is not believed.
          log.warn({ peerAddress }, 'identity header from untrusted address');
          return noCredentials;
        }
        if (secretHash !== undefined) {
          const sent = headers[options.secret_header];
          if (sent === undefined || !timingSafeEqual(hash(sent), secretHash)) {
            log.warn(
              { peerAddress, header: options.secret_header },
              'identity header without proxy secret',
            );
            return noCredentials;
          }
        }
        const named =
          verify === undefined
            ? nameInHeaders(request, options)
            : await nameInToken(headers[identityHeader], { options, verify });
        if ('user' in named) return { outcome: 'authenticated', user: userOf(named.user, options) };
        if (named.problem === undefined) return noCredentials;
        log[named.reason === 'provider' ? 'error' : 'warn']({ peerAddress }, named.problem);
        const { reason, message } = named;
        return { outcome: 'refused', reason, message };
      },
    };
  },
};

export default plugin;

const noCredentials: AuthenticationResult = { outcome: 'refused', reason: 'credentials' };

/** What a request says of who sends it. */
interface NamedUser {
  readonly name: string;
  readonly display: string | undefined;
  /** Undefined where this way to log in tells nothing of it. */
  readonly info: ClaimedInfo | undefined;
  /** Undefined where groups are none of this way to log in. */
  readonly groups: readonly string[] | undefined;
}

type Named =
  | { readonly user: NamedUser }
  | {
      /** For the log; undefined when no user is named, which is nothing unusual. */
      readonly problem: string | undefined;
      readonly reason: 'invalid_response' | 'provider';
      readonly message: string;
    };

const nobody: Named = { problem: undefined, reason: 'invalid_response', message: '' };

function nameInHeaders(request: LoginRequest, options: HeaderOptions): Named {
  const name = only(request, options.user_header);
  const email = only(request, options.email_header);
  const fullName = only(request, options.name_header);
  const groupText = only(request, options.groups_header);
  // A proxy between may have joined two headers to one; no user name holds a comma.
  const isJoined = typeof name === 'string' && name.includes(',');
  if (isJoined || name === twice || email === twice || fullName === twice || groupText === twice) {
    return {
      problem: 'an identity header came twice: the proxy must replace what clients send',
      reason: 'invalid_response',
      message: 'The proxy in front of this hub sent contradicting names.',
    };
  }
  if (name === undefined) return nobody;
  const groups = (groupText ?? '')
    .split(options.groups_separator)
    .flatMap((group) => group.trim() || []);
  return {
    user: {
      name,
      display: email,
      info:
        options.email_header === undefined && options.name_header === undefined
          ? undefined
          : { displayName: fullName, email, isEmailVerified: true },
      groups: options.groups_header === undefined ? undefined : groups,
    },
  };
}

async function nameInToken(
  token: string | undefined,
  { options, verify }: { readonly options: HeaderOptions; readonly verify: VerifySignedClaims },
): Promise<Named> {
  if (token === undefined || token === '') return nobody;
  const { jwt_header, jwt_user_claim, jwt_groups_claim } = options;
  const verified = await verify(token);
  if (verified.outcome === 'unreachable') {
    return {
      problem: `the keys for ${jwt_header} cannot be had: ${verified.reason}`,
      reason: 'provider',
      message: 'The hub cannot check who you are now. Try again in a moment.',
    };
  }
  const untrusted = (reason: string): Named => ({
    problem: `the token in ${jwt_header} is refused: ${reason}`,
    reason: 'invalid_response',
    message: 'The proxy in front of this hub sent a login that cannot be trusted.',
  });
  if (verified.outcome === 'invalid') return untrusted(verified.reason);
  const { claims } = verified;
  const name = textAt(claims, jwt_user_claim);
  if (name === undefined) return untrusted(`it has no text as ${jwt_user_claim}`);
  const groups = jwt_groups_claim === undefined ? undefined : listAt(claims, jwt_groups_claim);
  return {
    user: {
      name,
      display: textAt(claims, 'email'),
      // Many proxies log users in by their address and say no more of it.
      info: { ...infoOf(claims), isEmailVerified: claims['email_verified'] !== false },
      groups: jwt_groups_claim === undefined ? undefined : (groups ?? []),
    },
  };
}

function userOf({ name, display, info, groups }: NamedUser, options: HeaderOptions) {
  return {
    name,
    ...(display === undefined ? {} : { display }),
    ...(info === undefined ? {} : { info }),
    ...(groups === undefined ? {} : { groups }),
    ...judgeGroups(options, (group) => groups?.includes(group) === true),
  };
}

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
