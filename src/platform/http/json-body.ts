import type { Context } from 'koa';

/**
 * Answers with JSON, or with a text or bytes as they are. Left with an object, Koa would ask whether it is a `Response`
 * of `fetch`, and Node.js would load all of `fetch` to tell: 13 MiB.
 */
export function setBody(ctx: Context, body: unknown): void {
  if (body === null || typeof body === 'string' || Buffer.isBuffer(body)) {
    ctx.body = body;
    return;
  }
  ctx.type = 'json';
  ctx.body = JSON.stringify(body);
}
