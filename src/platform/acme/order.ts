import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { KeyPair } from '../http/tls/certificate-source.ts';
import { type AcmeAccount, type AcmeAnswer, AcmeError, parseAs } from './acme-client.ts';
import { createCertificateRequest } from './certificate-request.ts';
import type { Challenge, ChallengeResponder } from './challenges.ts';

const statusSchema = z.enum([
  'pending',
  'ready',
  'processing',
  'valid',
  'invalid',
  'deactivated',
  'expired',
  'revoked',
]);
const errorSchema = z.object({ type: z.string().optional(), detail: z.string().optional() });
const orderSchema = z.object({
  status: statusSchema,
  authorizations: z.array(z.url()),
  finalize: z.url(),
  certificate: z.url().optional(),
  error: errorSchema.optional(),
});
const authorizationSchema = z.object({
  status: statusSchema,
  identifier: z.object({ value: z.string() }),
  challenges: z.array(
    z.object({
      type: z.string(),
      url: z.url(),
      token: z
        .string()
        .regex(/^[\w-]*$/)
        .optional(),
      error: errorSchema.optional(),
    }),
  ),
});
type Authorization = z.output<typeof authorizationSchema>;

/** How long the authority may take for one answer that it owes. */
const decisionLimitMs = 300_000;
const firstPollMs = 250;
const maxPollMs = 10_000;

export interface OrderOptions {
  /** Of hosts; `*.example.org` stands for those one level below. */
  readonly names: readonly string[];
  readonly responder: ChallengeResponder;
  /** Id of the certificate that this one takes the place of (RFC 9773 §5). */
  readonly replaces: string | undefined;
  readonly signal: AbortSignal;
}

/** Orders a certificate (RFC 8555 §7.4). Throws AcmeError with what was tried, and what came of it. */
export async function orderCertificate(
  account: AcmeAccount,
  options: OrderOptions,
): Promise<KeyPair> {
  const { names, responder, signal } = options;
  const { url, order } = await placeOrder(account, options);
  const presented: Challenge[] = [];
  try {
    const asked: { url: string; challenge: Challenge }[] = [];
    for (const authorizationUrl of order.authorizations) {
      const authorization = await read(account, authorizationUrl, authorizationSchema);
      if (authorization.status === 'valid') continue;
      const { challengeUrl, challenge } = challengeOf(authorization, responder, account);
      presented.push(challenge);
      await responder.present(challenge, signal);
      asked.push({ url: authorizationUrl, challenge });
      await account.post(challengeUrl, {});
    }
    for (const { url: authorizationUrl, challenge } of asked) {
      const authorization = await decided(account, authorizationUrl, authorizationSchema, signal);
      if (authorization.status !== 'valid')
        throw await refusal(authorization, challenge, responder);
    }
  } finally {
    for (const challenge of presented) await responder.withdraw(challenge, signal);
  }
  const { csr, key } = await createCertificateRequest(names);
  await decided(account, url, orderSchema, signal);
  await account.post(order.finalize, { csr });
  const { certificate, error, status } = await decided(account, url, orderSchema, signal);
  if (certificate === undefined)
    throw new AcmeError(
      `the authority has not made the certificate (${status}): ${error?.detail ?? 'without a reason'}`,
    );
  return { certificate: (await account.post(certificate)).body, key };
}

async function placeOrder(
  { directory, post }: AcmeAccount,
  { names, replaces }: OrderOptions,
): Promise<{ readonly url: string; readonly order: z.output<typeof orderSchema> }> {
  const place = async (replaced: string | undefined) => {
    const answer = await post(directory.newOrder, {
      identifiers: names.map((value) => ({ type: 'dns', value })),
      ...(replaced !== undefined && { replaces: replaced }),
    });
    const order = parseAs(orderSchema, answer, directory.newOrder);
    if (answer.location === undefined) throw new AcmeError(`${directory.newOrder} names no order`);
    return { url: answer.location, order };
  };
  try {
    return await place(directory.renewalInfo === undefined ? undefined : replaces);
  } catch (error) {
    // Of another account or authority, replaced already, or no longer known (RFC 9773 §5).
    const isAboutOrder = error instanceof AcmeError && error.type !== 'rateLimited';
    if (replaces === undefined || !isAboutOrder) throw error;
    return await place(undefined);
  }
}

async function read<Value>(
  account: AcmeAccount,
  url: string,
  schema: z.ZodType<Value>,
): Promise<Value> {
  return parseAs(schema, await account.post(url), url);
}

/** Waits until a resource is neither pending nor processing, for as long as the server says (RFC 8555 §7.5.1). */
async function decided<Body extends { readonly status: string }>(
  account: AcmeAccount,
  url: string,
  schema: z.ZodType<Body>,
  signal: AbortSignal,
): Promise<Body> {
  const giveUpAtMs = performance.now() + decisionLimitMs;
  for (let pauseMs = firstPollMs; ; pauseMs = Math.min(pauseMs * 2, maxPollMs)) {
    const answer: AcmeAnswer = await account.post(url);
    const body = parseAs(schema, answer, url);
    if (body.status !== 'pending' && body.status !== 'processing') return body;
    if (performance.now() > giveUpAtMs)
      throw new AcmeError(
        `the authority has not decided within ${decisionLimitMs / 1000} s: ${url}`,
      );
    await sleep(Math.min(answer.retryAfterMs ?? pauseMs, maxPollMs), undefined, { signal });
  }
}

function challengeOf(
  { identifier, challenges }: Authorization,
  { type }: ChallengeResponder,
  { keyAuthorizationOf }: AcmeAccount,
): { readonly challengeUrl: string; readonly challenge: Challenge } {
  const found = challenges.find((each) => each.type === type);
  if (found?.token === undefined) {
    const offered = challenges.map((each) => each.type).join(', ');
    throw new AcmeError(
      `the authority does not check ${identifier.value} by ${type}, but by ${offered}: change Hub.acme.challenge`,
    );
  }
  const { url, token } = found;
  const keyAuthorization = keyAuthorizationOf(token);
  return { challengeUrl: url, challenge: { name: identifier.value, token, keyAuthorization } };
}

async function refusal(
  { identifier, challenges, status }: Authorization,
  challenge: Challenge,
  { type, describe }: ChallengeResponder,
): Promise<AcmeError> {
  const { error } = challenges.find((each) => each.type === type) ?? {};
  const reason = error?.detail ?? `the authorization is ${status}`;
  return new AcmeError(
    `the authority could not check ${identifier.value} by ${type}: ${reason}; ${await describe(challenge)}`,
  );
}
