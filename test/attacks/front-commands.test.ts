import { expect, test } from 'vitest';
import { hasWebServer, startProxy as startNginx } from '../support/web-servers.ts';
import { head, rawRequest, startProxy, startUpstream, statusOf } from './proxy-harness.ts';

const commands = {
  'x-accel-redirect': '/internal/secret',
  'x-accel-limit-rate': '1',
  'x-accel-expires': '3600',
  'x-accel-charset': 'utf-7',
  'x-sendfile': '/etc/passwd',
  'x-sendfile2': '/etc/passwd 0-9',
  'x-send-file': '/etc/passwd',
  'x-sendfile-temporary': '/etc/passwd',
  'x-lighttpd-send-file': '/etc/passwd',
  'x-lighttpd-send-tempfile': '/etc/passwd',
  'x-lighttpd-kbytes-per-second': '1',
  'x-litespeed-location': '/internal/secret',
  'x-litespeed-cache-control': 'public',
  'x-reproxy-url': 'http://169.254.169.254/',
  'x-envoy-immediate-health-check-fail': 'true',
};

/** An application that answers with commands for whatever is in front of the hub. */
async function startCommanding() {
  const upstream = await startUpstream((req, res) => {
    res.writeHead(200, { ...commands, 'x-accel-buffering': 'no', 'x-sender': 'a' });
    res.end(`the page ${req.url}`);
  });
  const proxy = await startProxy();
  proxy.addService('a', upstream.url);
  return {
    port: proxy.port,
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}

test('row 53: headers that command a front end at the hub', async () => {
  await using app = await startCommanding();
  const answer = await rawRequest(app.port, head('GET /services/a/', 'Connection: close'));
  const names = [...answer.matchAll(/^([a-z0-9-]+): /gim)].map(([, name]) => name?.toLowerCase());
  expect(Object.keys(commands).filter((name) => names.includes(name))).toEqual([]);
  expect(names).toEqual(expect.arrayContaining(['x-accel-buffering', 'x-sender']));
});

test.skipIf(!hasWebServer('nginx'))(
  'row 53: no application opens the internal locations of nginx before the hub',
  async () => {
    await using app = await startCommanding();
    await using nginx = await startNginx(
      `http://127.0.0.1:${app.port}`,
      `} location /internal/ { internal; return 200 'for nginx alone';`,
    );
    const answer = await fetch(`${nginx.url}/services/a/x`);
    expect([answer.status, await answer.text()]).toEqual([200, 'the page /services/a/x']);
    expect((await fetch(`${nginx.url}/internal/secret`)).status).toBe(404);
    const raw = await rawRequest(nginx.port, head('GET /services/a/x', 'Connection: close'));
    expect(statusOf(raw)).toBe(200);
  },
);
