import { createPublicKey, type KeyObject } from 'node:crypto';
import { z } from 'zod';
import type { AcmeConfig } from '../config/config.ts';

/** What an ACME server says of a request that it refuses (RFC 8555 §6.7), or why it could not be asked. */
export class AcmeError extends Error {
  override readonly name = 'AcmeError';
  /** Such as `rateLimited`; undefined where the server gives none. */
  readonly type: string | undefined;
  /** After which it may be asked again, as it says (RFC 9110 §10.2.3). */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, { type, retryAfterMs, cause }: AcmeErrorOptions = {}) {
    super(message, { cause });
    this.type = type;
    this.retryAfterMs = retryAfterMs;
  }
}

interface AcmeErrorOptions {
  readonly type?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

export interface AcmeAnswer {
  readonly body: string;
  readonly location: string | undefined;
  readonly retryAfterMs: number | undefined;
}

/** An account at an ACME server. Every method throws AcmeError. */
export interface AcmeAccount {
  readonly directory: AcmeDirectory;
  /** What a challenge is to be answered with: the token and the thumbprint of the key (RFC 8555 §8.1). */
  keyAuthorizationOf(token: string): string;
  /** Sends what the account signs; without a payload it asks for a resource (POST-as-GET, RFC 8555 §6.3). */
  post(url: string, payload?: object): Promise<AcmeAnswer>;
}

const directorySchema = z.object({
  newNonce: z.url(),
  newAccount: z.url(),
  newOrder: z.url(),
  /** RFC 9773 §3. */
  renewalInfo: z.url().optional(),
});
export type AcmeDirectory = z.output<typeof directorySchema>;

const problemSchema = z.object({
  type: z.string().optional(),
  detail: z.string().optional(),
  subproblems: z
    .array(z.object({ detail: z.string(), identifier: z.object({ value: z.string() }).optional() }))
    .optional(),
});

const requestLimitMs = 30_000;
const maxAnswerBytes = 256 * 1024;
/** Servers refuse a good nonce now and then, and every one while they start (RFC 8555 §6.5). */
const maxNonces = 20;

export interface AcmeServer {
  /** Address of the directory (RFC 8555 §7.1.1). */
  readonly directory: string;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
}

/**
 * Opens the account of a key, which is made where the server knows none: so an account that the server has lost comes back
 * by itself. Throws AcmeError.
 */
export async function openAcmeAccount(
  server: AcmeServer,
  account: {
    /** P-256. */
    readonly key: KeyObject;
    readonly email: string | undefined;
    readonly externalAccount: AcmeConfig['external_account'];
  },
): Promise<AcmeAccount> {
  const jose = await import('jose');
  const { key, email, externalAccount } = account;
  const jwk = await jose.exportJWK(createPublicKey(key));
  const thumbprint = await jose.calculateJwkThumbprint(jwk);
  const directory = await readDirectory(server);
  let nonce: string | undefined;
  let kid: string | undefined;

  async function signed(url: string, payload: object | undefined): Promise<string> {
    nonce ??= (await askRaw(server, directory.newNonce, { method: 'HEAD' })).headers.get(
      'replay-nonce',
    ) as string | undefined;
    const bytes = payload === undefined ? '' : JSON.stringify(payload);
    const jws = await new jose.FlattenedSign(Buffer.from(bytes))
      .setProtectedHeader({ alg: 'ES256', nonce, url, ...(kid === undefined ? { jwk } : { kid }) })
      .sign(key);
    nonce = undefined;
    return JSON.stringify(jws);
  }

  async function post(url: string, payload?: object): Promise<AcmeAnswer> {
    for (let nonces = 1; ; nonces += 1) {
      const answer = await askRaw(server, url, {
        method: 'POST',
        headers: { 'content-type': 'application/jose+json' },
        body: await signed(url, payload),
      });
      nonce = answer.headers.get('replay-nonce') ?? undefined;
      try {
        return await readAnswer(url, answer);
      } catch (error) {
        if (!(error instanceof AcmeError && error.type === 'badNonce') || nonces === maxNonces)
          throw error;
      }
    }
  }

  const { location } = await post(directory.newAccount, {
    termsOfServiceAgreed: true,
    ...(email !== undefined && { contact: [`mailto:${email}`] }),
    ...(externalAccount !== undefined && {
      externalAccountBinding: await new jose.FlattenedSign(Buffer.from(JSON.stringify(jwk)))
        .setProtectedHeader({ alg: 'HS256', kid: externalAccount.id, url: directory.newAccount })
        .sign(Buffer.from(externalAccount.key.reveal(), 'base64url')),
    }),
  });
  if (location === undefined) throw notAcme(directory.newAccount);
  kid = location;
  return {
    directory,
    keyAuthorizationOf: (token) => `${token}.${thumbprint}`,
    post,
  };
}

const renewalInfoSchema = z.object({
  suggestedWindow: z.object({
    start: z.iso.datetime({ offset: true }),
    end: z.iso.datetime({ offset: true }),
  }),
  explanationURL: z.string().optional(),
});

/** When an authority wants a certificate to be renewed (RFC 9773 §4.2). */
export interface RenewalInfo {
  readonly window: { readonly start: number; readonly end: number };
  /** Why, where the authority says so. */
  readonly explanationUrl: string | undefined;
  /** After which it is to be asked again. */
  readonly retryAfterMs: number | undefined;
}

/** Asks for it by the id of a certificate (RFC 9773 §4.1); undefined where the authority does not tell. Throws AcmeError. */
export async function askRenewalInfo(
  server: AcmeServer,
  certificateId: string,
): Promise<RenewalInfo | undefined> {
  const { renewalInfo } = await readDirectory(server);
  if (renewalInfo === undefined) return undefined;
  const url = `${renewalInfo.replace(/\/$/, '')}/${certificateId}`;
  const answer = await ask(server, url);
  const { suggestedWindow, explanationURL } = parseAs(renewalInfoSchema, answer, url);
  const [start, end] = [Date.parse(suggestedWindow.start), Date.parse(suggestedWindow.end)];
  if (start > end) throw notAcme(url);
  return {
    window: { start, end },
    explanationUrl: explanationURL,
    retryAfterMs: answer.retryAfterMs,
  };
}

async function readDirectory(server: AcmeServer): Promise<AcmeDirectory> {
  return parseAs(directorySchema, await ask(server, server.directory), server.directory);
}

/** Reads an answer in JSON. Throws AcmeError for any other. */
export function parseAs<Value>(
  schema: z.ZodType<Value>,
  { body }: Pick<AcmeAnswer, 'body'>,
  url: string,
): Value {
  try {
    return schema.parse(JSON.parse(body));
  } catch (cause) {
    throw notAcme(url, cause);
  }
}

function notAcme(url: string, cause?: unknown): AcmeError {
  return new AcmeError(`${url} answers with something that is not ACME`, { cause });
}

async function ask(server: AcmeServer, url: string): Promise<AcmeAnswer> {
  return await readAnswer(url, await askRaw(server, url, {}));
}

async function askRaw({ fetch, signal }: AcmeServer, url: string, init: RequestInit) {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(requestLimitMs)]);
  try {
    return await fetch(url, { ...init, signal: limit });
  } catch (error) {
    signal.throwIfAborted();
    throw new AcmeError(`${url} gives no answer: ${causeOf(error)}`, { cause: error });
  }
}

/** Why a request failed, in words. */
export function causeOf(error: unknown): string {
  const { cause = error } = error as { readonly cause?: unknown };
  const { code = '', message } = cause as NodeJS.ErrnoException;
  // Also where the certificate is good and the clock of this machine is not.
  return /^CERT_(?:NOT_YET_VALID|HAS_EXPIRED)$/.test(code)
    ? `${message} by the clock of this machine, which says ${new Date().toISOString()}`
    : message || code || String(cause);
}

async function readAnswer(url: string, answer: Response): Promise<AcmeAnswer> {
  const body = await readBody(url, answer);
  const retryAfterMs = readRetryAfter(answer.headers.get('retry-after'));
  if (answer.ok)
    return { body, location: answer.headers.get('location') ?? undefined, retryAfterMs };
  let problem: z.output<typeof problemSchema> = {};
  try {
    problem = problemSchema.parse(JSON.parse(body));
  } catch {
    // A proxy before the server, perhaps.
  }
  const { type, detail, subproblems = [] } = problem;
  const parts = subproblems.map(
    ({ identifier, detail }) =>
      `${identifier === undefined ? '' : `${identifier.value}: `}${detail}`,
  );
  throw new AcmeError(
    [`${new URL(url).host} answers ${answer.status}`, detail, ...parts].filter(Boolean).join('; '),
    { type: type?.replace('urn:ietf:params:acme:error:', ''), retryAfterMs },
  );
}

async function readBody(url: string, { body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body ?? []) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > maxAnswerBytes) throw new RangeError('it is too long');
    }
  } catch (error) {
    throw new AcmeError(`${url} gives no whole answer: ${causeOf(error)}`, { cause: error });
  }
  return Buffer.concat(chunks).toString();
}

/** Seconds, or a date (RFC 9110 §10.2.3). */
function readRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
