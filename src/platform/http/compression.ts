import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Context, Middleware } from 'koa';

/** Below this a body is one packet either way. */
const minBytes = 1_024;

const [compressBrotli, compressGzip] = [promisify(brotliCompress), promisify(gzip)];
/** `quality` is that of Brotli, 0 to 11. */
const codings = {
  br: (body: Buffer, quality: number) =>
    compressBrotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }),
  gzip: (body: Buffer) => compressGzip(body),
} as const;

type Coding = keyof typeof codings;

/** The content coding that a body is sent in; undefined for none (RFC 9110 §12.5.3). */
function codingFor(ctx: Context, bytes: number): Coding | undefined {
  ctx.vary('Accept-Encoding');
  if (bytes < minBytes) return undefined;
  return (['br', 'gzip'] as const).find((coding) => ctx.acceptsEncodings(coding));
}

/**
 * Compresses pages that no other site has had opened. The size of a compressed page says what is in it to one who
 * chooses a part of it, such as a search, and watches the line (BREACH, CVE-2013-3587). Browsers say over TLS who has had
 * a page opened (Fetch Metadata §2.4); without TLS there is nothing to find out by a size.
 */
export function compressPages({ isHttps }: { readonly isHttps: boolean }): Middleware {
  return async (ctx, next) => {
    await next();
    const { body } = ctx;
    if (typeof body !== 'string' || ctx.response.type !== 'text/html') return;
    const site = ctx.req.headers['sec-fetch-site'];
    const isOwn = site === 'same-origin' || site === 'none' || (site === undefined && !isHttps);
    if (!isOwn) return;
    await sendText(ctx, body);
  };
}

/** Answers with a text that is made for one request. */
export async function sendText(ctx: Context, body: string): Promise<void> {
  const plain = Buffer.from(body);
  const coding = codingFor(ctx, plain.length);
  if (coding !== undefined) ctx.set('Content-Encoding', coding);
  ctx.body = coding === undefined ? body : await codings[coding](plain, 4);
}

const compressedFiles = new WeakMap<Buffer, Partial<Record<Coding, Promise<Buffer>>>>();

/** Answers with a file that everyone may read, compressed once where it is text. Its headers are set already. */
export async function sendFile(ctx: Context, body: Buffer): Promise<void> {
  const isText = /^(?:text\/|image\/svg)/.test(ctx.response.type);
  const coding = isText ? codingFor(ctx, body.length) : undefined;
  if (coding !== undefined) {
    ctx.set('Content-Encoding', coding);
    // Another coding is another representation (RFC 9110 §8.8.3.3).
    ctx.set('ETag', ctx.response.get('ETag').replace(/"$/, `-${coding}"`));
  }
  ctx.status = 200;
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  if (coding === undefined) {
    ctx.body = body;
    return;
  }
  const known = compressedFiles.get(body) ?? {};
  compressedFiles.set(body, known);
  known[coding] ??= codings[coding](body, constants.BROTLI_MAX_QUALITY);
  ctx.body = await known[coding];
}
