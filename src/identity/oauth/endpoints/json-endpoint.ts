import type { IncomingMessage } from 'node:http';
import type { Context, Middleware } from 'koa';
import { HubError } from '../../../platform/errors.ts';
import { readFormBody, setBody } from '../../../platform/http/body.ts';
import { OAuthError, type OAuthErrorCode } from '../oauth-error.ts';
import { toOAuthErrorResponse } from '../oauth-error-response.ts';
import { rejectRepeatedParameters } from '../request-parameters.ts';

/** A request to an endpoint that clients call directly. */
export interface OAuthRequest {
  readonly form: URLSearchParams;
  readonly authorization: string | undefined;
  readonly incoming: IncomingMessage;
}

/** Called with the error code of every refusal a client is answered with. */
export type CountRefusal = (error: OAuthErrorCode) => void;

/** By which a client says who it is (RFC 6749 §2.3.1, RFC 7521 §4.2). */
const clientParameters = [
  'client_id',
  'client_secret',
  'client_assertion',
  'client_assertion_type',
];

const bodyLimitBytes = 16 * 1024;

/**
 * An endpoint that takes a form and answers with JSON that must not be cached (RFC 6749 §3.2,
 * §5). `parameters` are those the endpoint knows: none may come twice, none may stand in the URL.
 */
export function createJsonEndpoint(
  options: {
    readonly parameters: readonly string[];
    readonly countRefusal: CountRefusal;
    /** Whether a request without a body is refused; as it is unless given. */
    readonly needsForm?: boolean;
    /** Of an answer that is no refusal; 200 unless given. */
    readonly status?: number;
  },
  answer: (request: OAuthRequest) => Promise<object>,
): Middleware {
  const known = [...options.parameters, ...clientParameters];

  return async (ctx) => {
    // Both are what RFC 6749 §5.1 asks for.
    ctx.set('Cache-Control', 'no-store');
    ctx.set('Pragma', 'no-cache');
    try {
      rejectParametersInUrl(new URLSearchParams(ctx.querystring), known);
      const hasForm = options.needsForm !== false || isForm(ctx);
      const form = hasForm ? await readForm(ctx) : new URLSearchParams();
      rejectRepeatedParameters(form, known);
      const { authorization } = ctx.req.headers;
      const body = await answer({ form, authorization, incoming: ctx.req });
      ctx.status = options.status ?? 200;
      setBody(ctx, body);
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      options.countRefusal(error.error);
      const response = toOAuthErrorResponse(error);
      ctx.status = response.status;
      ctx.set(response.headers);
      setBody(ctx, response.body);
    }
  };
}

function isForm({ method, req }: Context): boolean {
  return method === 'POST' && req.headers['content-type'] !== undefined;
}

/** Credentials in a URL end up in logs; they belong into the body (RFC 6749 §2.3.1). */
function rejectParametersInUrl(query: URLSearchParams, known: readonly string[]): void {
  const misplaced = known.find((name) => query.has(name));
  if (misplaced === undefined) return;
  throw new OAuthError('invalid_request', `The parameter ${misplaced} must be sent in the body.`);
}

async function readForm(ctx: Context): Promise<URLSearchParams> {
  try {
    return await readFormBody(ctx.req, bodyLimitBytes);
  } catch (error) {
    if (!(error instanceof HubError)) throw error;
    if (error.code === 'payload_too_large') ctx.set('Connection', 'close');
    throw new OAuthError('invalid_request', error.message, { cause: error });
  }
}
