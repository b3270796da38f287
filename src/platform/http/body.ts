import type { IncomingMessage } from 'node:http';
import type { Context } from 'koa';
import { HubError } from '../errors.ts';
import { deepestJson, isNestedTooDeep } from '../protocol/json-depth.ts';
import { JsonText } from '../protocol/json-text.ts';
import { text } from '../texts/text.ts';
import { writeETag } from './if-match.ts';

const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Reads an `application/x-www-form-urlencoded` body. Throws `unsupported_media_type` for another
 * content type, `payload_too_large` over the limit, `bad_request` when it is not UTF-8.
 */
export async function readFormBody(
  request: IncomingMessage,
  limitBytes: number,
): Promise<URLSearchParams> {
  requireContentType(request, 'application/x-www-form-urlencoded');
  return new URLSearchParams(await readTextBody(request, limitBytes));
}

/**
 * Reads a JSON body; an empty one is undefined. Errors as `readFormBody`, `bad_request` if invalid or
 * nested too deep.
 * `anyContentType` is for callers that present a token: `curl -d`, `requests.post(data=…)` and clients
 * of JupyterHub send JSON under another type or none. A caller known by a cookie must name the type,
 * which no form of another site can do.
 */
export async function readJsonBody(
  request: IncomingMessage,
  limitBytes: number,
  { anyContentType = false }: { readonly anyContentType?: boolean } = {},
): Promise<unknown> {
  const sent = await readTextBody(request, limitBytes);
  if (sent.trim() === '') return undefined;
  if (!anyContentType) requireContentType(request, 'application/json');
  let value: unknown;
  try {
    value = JSON.parse(sent);
  } catch {
    throw new HubError('bad_request', text`Invalid JSON in body of request.`);
  }
  requireBoundedDepth(value);
  return value;
}

/** Throws `bad_request` for a value of JSON that is nested too deep to be worked with. */
export function requireBoundedDepth(value: unknown): void {
  if (!isNestedTooDeep(value)) return;
  throw new HubError('bad_request', text`JSON may be nested ${deepestJson} levels deep.`);
}

function requireContentType(request: IncomingMessage, expected: string): void {
  const sent = request.headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  if (sent === expected) return;
  throw new HubError('unsupported_media_type', text`The body must be sent as ${expected}.`, {
    hint:
      sent === ''
        ? text`Set the Content-Type header.`
        : text`It was sent as ${sent.slice(0, 100)}.`,
  });
}

/**
 * Reads a body as text. Throws `payload_too_large` over the limit, `bad_request` when it is not UTF-8 or the
 * client leaves before its end.
 */
export async function readTextBody(request: IncomingMessage, limitBytes: number): Promise<string> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > limitBytes) throw tooLarge(limitBytes);
  const chunks: Buffer[] = [];
  let byteCount = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      byteCount += chunk.length;
      if (byteCount > limitBytes) throw tooLarge(limitBytes);
      chunks.push(chunk);
    }
  } catch (error) {
    if (error instanceof HubError || request.complete) throw error;
    throw new HubError('bad_request', text`The client left before the end of the body.`);
  }
  try {
    return utf8.decode(Buffer.concat(chunks));
  } catch {
    throw new HubError('bad_request', text`The body is not valid UTF-8.`);
  }
}

function tooLarge(limitBytes: number): HubError {
  return new HubError('payload_too_large', text`The body is larger than ${limitBytes} bytes.`);
}

/**
 * Answers with JSON, or with a text or bytes as they are; with 304 where the client has what is written already. Left
 * with an object, Koa would ask whether it is a `Response` of `fetch`, and Node.js would load all of `fetch` to tell:
 * 13 MiB.
 */
export function setBody(ctx: Context, body: unknown): void {
  if (body === null || typeof body === 'string' || Buffer.isBuffer(body)) {
    ctx.body = body;
    return;
  }
  ctx.set('Content-Type', 'application/json; charset=utf-8');
  if (!(body instanceof JsonText)) {
    ctx.body = JSON.stringify(body);
    return;
  }
  ctx.set('ETag', writeETag(body.version));
  ctx.body = body.bytes;
  // RFC 9110 §13.1.2.
  if (ctx.fresh) ctx.status = 304;
}
