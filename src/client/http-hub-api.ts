import { timeLimit } from '../platform/concurrency/time-limit.ts';
import { HubError } from '../platform/errors.ts';
import type { CodeExchange, CodeExchangeResult, HubApi, UserModel } from './hub-api.ts';

const maxAnswerBytes = 1024 * 1024;

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

/** Speaks to the hub's REST API over HTTP. */
export function createHttpHubApi(options: {
  /** Without a slash at its end. */
  readonly apiUrl: string;
  readonly apiToken: string;
  readonly clientId: string | undefined;
  readonly timeoutMs: number;
}): HubApi {
  const { apiUrl, apiToken, clientId, timeoutMs } = options;

  async function userForToken(token: string, signal?: AbortSignal): Promise<UserModel | null> {
    const answer = await ask('user', { headers: { authorization: `token ${token}` } }, signal);
    if (answer.status === 401 || answer.status === 403) return null;
    if (answer.status !== 200) throw refused('identify a token', answer);
    return asUserModel(answer.body);
  }

  async function exchangeCode(
    exchange: CodeExchange,
    signal?: AbortSignal,
  ): Promise<CodeExchangeResult> {
    const form = new URLSearchParams({
      grant_type: 'authorization_code',
      code: exchange.code,
      redirect_uri: exchange.redirectUri,
      code_verifier: exchange.codeVerifier,
      client_id: clientId ?? '',
      client_secret: apiToken,
    });
    const answer = await ask('oauth2/token', { method: 'POST', body: form }, signal);
    if (answer.body['error'] === 'invalid_grant') {
      return { outcome: 'refused', description: text(answer.body['error_description']) };
    }
    if (answer.status !== 200) throw refused('exchange an authorization code', answer);
    const accessToken = text(answer.body['access_token']);
    if (accessToken === undefined) throw nonsense('a token response without access_token');
    const expiresIn = Number(answer.body['expires_in']);
    return {
      outcome: 'issued',
      accessToken,
      expiresInSeconds: Number.isFinite(expiresIn) && expiresIn > 0 ? expiresIn : undefined,
    };
  }

  async function ask(path: string, init: RequestInit, signal?: AbortSignal): Promise<Answer> {
    const url = `${apiUrl}/${path}`;
    const timeout = timeLimit(timeoutMs);
    let response: Response;
    let body: string;
    try {
      response = await fetch(url, {
        ...init,
        headers: { accept: 'application/json', ...init.headers },
        // A redirect would carry the token to an address that is not configured.
        redirect: 'manual',
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      });
      body = await readBounded(response);
    } catch (cause) {
      signal?.throwIfAborted();
      if (cause instanceof HubError) throw cause;
      throw new HubError('unavailable', 'The hub cannot be reached right now.', {
        cause: new Error(`no answer from ${url}`, { cause }),
        hint: 'Try again in a moment.',
        retryAfterSeconds: 5,
      });
    }
    if (response.status >= 500) {
      throw new HubError('upstream_failed', 'The hub could not check who you are.', {
        cause: new Error(`${url} answered ${response.status}`),
        hint: 'Try again in a moment.',
      });
    }
    return { status: response.status, body: parseObject(body, response.status) };
  }

  return { userForToken, exchangeCode };
}

async function readBounded(response: Response): Promise<string> {
  if (response.body === null) return '';
  const chunks: Uint8Array[] = [];
  let byteCount = 0;
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    byteCount += chunk.length;
    if (byteCount > maxAnswerBytes) throw nonsense(`more than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parseObject(body: string, status: number): Answer['body'] {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Answer['body'];
    }
  } catch {
    // Refusals need no readable body; a success without one is caught below.
  }
  if (status === 200) throw nonsense('something other than a JSON object');
  return {};
}

function asUserModel(body: Answer['body']): UserModel {
  const { name, groups, scopes } = body;
  const isTextList = (value: unknown) =>
    value === undefined ||
    (Array.isArray(value) && value.every((item) => typeof item === 'string'));
  if (typeof name !== 'string' || name === '' || !isTextList(groups) || !isTextList(scopes)) {
    throw nonsense('a user model of an unknown form');
  }
  return body as UserModel;
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The hub refused what this service itself asked for: an error of the setup, not of the visitor. */
function refused(what: string, answer: Answer): HubError {
  const reason = text(answer.body['error_description']) ?? text(answer.body['message']) ?? '';
  return new HubError('internal', 'This service is not allowed to check who you are.', {
    cause: new Error(
      `the hub answered ${answer.status} when asked to ${what}. ${reason}`.trimEnd(),
    ),
    hint: 'Tell your administrator: its API token or OAuth client may be wrong.',
  });
}

function nonsense(what: string): HubError {
  return new HubError('upstream_failed', 'The hub gave an answer that cannot be understood.', {
    cause: new Error(`the hub answered with ${what}; is api_url the address of its API?`),
  });
}
