import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from 'node:http2';
import { type AddressInfo, createServer } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { expect, test } from 'vitest';
import { until } from '../../../../test/support/test-hub.ts';
import { proxySection } from '../../config/sections-schema.ts';
import { createHttp2End } from './http2-end.ts';

async function withSession(
  serve: (req: IncomingMessage, res: ServerResponse) => void,
  work: (session: ClientHttp2Session) => Promise<void>,
  settings: { readonly request_timeout?: number; readonly idle_timeout?: number } = {},
): Promise<void> {
  const take = createHttp2End({
    config: proxySection.parse(settings),
    accept: () => undefined,
    serve,
    tooLate: (stream) => void stream.emit('late'),
  });
  const listener = createServer((socket) => void take(socket as TLSSocket)).listen(0);
  await once(listener, 'listening');
  const session = connect(`http://127.0.0.1:${(listener.address() as AddressInfo).port}`);
  try {
    await work(session);
  } finally {
    session.destroy();
    listener.close();
  }
}

/** The status of an answer, and how its stream ended. */
async function outcomeOf(stream: ClientHttp2Stream): Promise<{ status?: number; code: number }> {
  let status: number | undefined;
  stream
    .on('error', () => {})
    .on('response', (headers) => {
      status = headers[':status'];
    });
  await new Promise((resolve) => stream.resume().once('close', resolve));
  return { ...(status !== undefined && { status }), code: stream.rstCode ?? 0 };
}

test.each(['GET', 'HEAD'])(
  'a %s request that is cut before its answer is reset',
  async (method) => {
    await withSession(
      (req) => req.socket.destroy(),
      async (session) => {
        const outcome = await outcomeOf(session.request({ ':method': method, ':path': '/' }));
        expect(outcome).toEqual({ code: constants.NGHTTP2_INTERNAL_ERROR });
      },
    );
  },
);

test('an answer with a status that HTTP/2 does not have becomes 502', async () => {
  await withSession(
    (_, res) => res.writeHead(999).end('x'),
    async (session) => {
      expect(await outcomeOf(session.request({ ':path': '/' }))).toEqual({ status: 502, code: 0 });
    },
  );
});

test('a request that is not whole in time is given up', async () => {
  await withSession(
    (req) => void req.socket.once('late', () => req.socket.destroy()),
    async (session) => {
      const stream = session.request({ ':method': 'POST', ':path': '/' });
      expect(await outcomeOf(stream)).toEqual({ code: constants.NGHTTP2_INTERNAL_ERROR });
    },
    { request_timeout: 1 },
  );
});

test('a connection ends when it has long been unused, and not under a request', async () => {
  const answers = Promise.withResolvers<ServerResponse>();
  await withSession(
    (_, res) => answers.resolve(res),
    async (session) => {
      const ended = once(session, 'close');
      const stream = session.request({ ':path': '/' });
      const res = await answers.promise;
      const other = connect(`http://127.0.0.1:${session.socket.remotePort}`);
      await once(other, 'close');
      expect(session.closed).toBe(false);
      res.end();
      expect(await outcomeOf(stream)).toEqual({ status: 200, code: 0 });
      await ended;
    },
    { idle_timeout: 1 },
  );
});

test('a request that is reset while nobody reads it is over, and hints come to nothing', async () => {
  const answered = Promise.withResolvers<ServerResponse>();
  await withSession(
    // It reads nothing, and so much stays unread.
    (_, res) => answered.resolve(res),
    async (session) => {
      const stream = session.request({ ':method': 'POST', ':path': '/' }).on('error', () => {});
      let taken = 0;
      for (let piece = 0; piece < 256; piece += 1) {
        stream.write(Buffer.alloc(16_384), () => {
          taken += 1;
        });
      }
      const res = await answered.promise;
      const closed = once(res, 'close');
      const hint = () => res.writeEarlyHints({ link: '</a.css>; rel=preload' });
      hint();
      const [{ ':status': status }] = await once(stream, 'headers');
      expect(status).toBe(103);
      let before = Number.NaN;
      await until(() => {
        const isStuck = taken === before;
        before = taken;
        return isStuck;
      }, 'no more of it is taken');
      const hinting = setInterval(hint, 1);
      // Of all codes, this one has Node keep the stream until its body has been read.
      stream.close(constants.NGHTTP2_NO_ERROR);
      await closed;
      clearInterval(hinting);
    },
  );
});
