import { describe, expect, test } from 'vitest';
import {
  head,
  rawRequest,
  startProxy,
  startRawUpstream,
  startUpstream,
} from '../../../test/attacks/proxy-harness.ts';

describe('the trailers of an answer', () => {
  test('reach clients that read them, without what is for a head', async () => {
    const forbidden = [
      ...[
        'Content-Length: 5',
        'Transfer-Encoding: chunked',
        'Content-Type: text/html',
        'Host: evil',
      ],
      ...['Set-Cookie: hub-session-id=x', 'Authorization: Bearer x', 'WWW-Authenticate: Basic'],
      ...['Location: //evil', 'Cache-Control: public', 'Connection: X-Listed', 'X-Listed: 1'],
      ...['Access-Control-Allow-Origin: *', 'Clear-Site-Data: "*"', 'Trailer: X-Sum'],
      ...['X-Hub-User: root', 'X-Accel-Redirect: /etc', 'Strict-Transport-Security: max-age=0'],
    ];
    const allowed = [
      'X-Sum: 1',
      'X-Sum: 2',
      'Grpc-Status: 0',
      'ETag: "a"',
      'Content-Digest: sha-256=:x:',
    ];
    await using upstream = await startRawUpstream((peer) => {
      peer.socket.on('more', () =>
        peer.write(
          'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n' +
            `${[...forbidden, ...allowed].join('\r\n')}\r\n\r\n`,
        ),
      );
    });
    await using proxy = await startProxy();
    proxy.addService('a', upstream.url);
    const open = async (...lines: string[]) =>
      await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close', ...lines));
    const answer = await open('TE: gzip;q=0.5, trailers');
    const [, section = ''] = answer.split('\r\n0\r\n');
    expect(section.trim().toLowerCase().split('\r\n')).toEqual(
      allowed.map((line) => line.toLowerCase()),
    );
    expect(await open()).toMatch(/\r\n0\r\n\r\n$/);
    expect(await open('TE: no-trailers')).toMatch(/\r\n0\r\n\r\n$/);
    const old = await rawRequest(
      proxy.port,
      'GET /services/a/ HTTP/1.0\r\nHost: a\r\nTE: trailers\r\n\r\n',
    );
    expect(old).toMatch(/\r\n\r\nok$/);
  });

  test('come by way of another instance', async () => {
    await using upstream = await startUpstream((req, res) => {
      res.write(String(req.headers['te']));
      res.addTrailers({ 'X-Sum': '1', 'Set-Cookie': 'a=b' });
      res.end();
    });
    await using there = await startProxy();
    there.addService('a', upstream.url);
    await using here = await startProxy();
    here.addService('a', `http://127.0.0.1:${there.port}`, true);
    const open = async (...lines: string[]) =>
      await rawRequest(here.port, head('GET /services/a/', 'Connection: close', ...lines));
    expect(await open('TE: trailers')).toMatch(/undefined\r\n0\r\nx-sum: 1\r\n\r\n$/);
    expect(await open()).toMatch(/undefined\r\n0\r\n\r\n$/);
  });
});
