import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { rawClient, startUpstream } from '../attacks/proxy-harness.ts';
import { untilState } from '../support/services.ts';
import { createTestHub } from '../support/test-hub.ts';

test('a body is asked for only where the request is let in', async () => {
  const sizes: number[] = [];
  await using app = await startUpstream((req, res) => {
    void text(req).then((body) => {
      if (req.method === 'PUT') sizes.push(body.length);
      res.end(`took ${body.length}`);
    });
  });
  await using hub = await createTestHub({
    Hub: { services: [{ name: 'app', url: app.url, access: 'gateway' }] },
  });
  await untilState(hub, 'app', 'ready');
  const { port, host } = new URL(hub.url);

  async function send(path: string, ...fields: string[]) {
    const headers = [`Host: ${host}`, 'Expect: 100-continue', ...fields];
    return await rawClient(
      Number(port),
      `${[`PUT ${path} HTTP/1.1`, ...headers].join('\r\n')}\r\n\r\n`,
    );
  }

  const refused = [
    ['/services/app/', 401],
    ['/services/app/', 401, 'Transfer-Encoding: chunked'],
    ['/hub/api/users/bob', 405],
    ['/hub/nothing', 404],
  ] as const;
  for (const [path, status, framing = 'Content-Length: 50000000'] of refused) {
    const client = await send(path, framing, 'Accept: */*');
    await client.closed;
    expect(client.text()).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(client.text()).toMatch(/^connection: close/im);
  }
  expect(sizes).toEqual([]);

  for (const [framing, body] of [
    ['Content-Length: 5', 'hello'],
    ['Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'],
  ] as const) {
    const client = await send(
      '/services/app/',
      framing,
      'Authorization: token admin-service-token',
    );
    await client.until('HTTP/1.1 100 Continue\r\n\r\n');
    client.write(body);
    await client.until('took 5');
    expect(client.text()).not.toMatch(/^connection: close/im);
    client.socket.destroy();
  }
});
