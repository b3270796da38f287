import { describe, expect, test } from 'vitest';
import { head, rawRequest, startProxy, startUpstream, statusOf } from './proxy-harness.ts';

/** The status of a GET, and what path whichever upstream saw. */
async function ask(targets: readonly string[]) {
  const seen: string[] = [];
  const upstream = (name: string) =>
    startUpstream((req, res) => {
      seen.push(`${name}:${req.url}`);
      res.end();
    });
  await using alice = await upstream('alice');
  await using bob = await upstream('bob');
  await using open = await upstream('open');
  await using proxy = await startProxy();
  const server = (userName: string, target: string) =>
    proxy.routes.add({
      prefix: `/user/${userName}/`,
      target,
      access: 'server',
      owner: { kind: 'server', userName, serverName: '' },
      serverId: userName,
    });
  server('alice', alice.url);
  server('bob', bob.url);
  proxy.addService('open', open.url);
  const statuses: number[] = [];
  for (const target of targets) {
    const response = await rawRequest(proxy.port, head(`GET ${target}`, 'Connection: close'));
    statuses.push(statusOf(response));
  }
  return { statuses, seen };
}

describe('path confusion', () => {
  test.for(['/services/open%23/../../user/bob/', '/services/open#/user/bob/', '/services/open/#x'])(
    'row 10: a fragment in %s is 400',
    async (target) => {
      expect(await ask([target])).toEqual({ statuses: [400], seen: [] });
    },
  );

  test.for([
    '/services/open%2f..%2f..%2fuser%2fbob/',
    '/services/open/..%2f..%2fuser/bob/',
    '/services/op%65n/../../user/bob/',
    '/services/open/%2e%2e/%2e%2e/user/bob/',
    '/services/open/.%2e/.%2e/user/bob/',
    '/services/open/..;/..;/user/bob/',
    '/services/open/..%5c..%5cuser%5cbob/',
    '/services/open/..\\..\\user\\bob/',
    '/services%2fopen/x',
    '/services//open/x',
    '/user%2fbob/x',
    '/user/alice%2f',
    '//hub.test/user/alice/',
    '/\\hub.test/user/alice/',
    '/user/alice;x/../bob/',
    '/user/alice/%00',
    '/user/alice/%0d%0aX-Evil:1',
  ])('rows 11 to 13: %s is 400 and reaches nobody', async (target) => {
    expect(await ask([target])).toEqual({ statuses: [400], seen: [] });
  });

  test('rows 11 to 13: what is forwarded is what was decided, in the hub’s spelling of the prefix', async () => {
    const { statuses, seen } = await ask([
      '/user/%61lice/x%2Fy?z=%2f..%2f',
      '/%75ser/alice/%78',
      '/user/alice/a//b',
      '/user/alice/%252e%252e/bob',
      '/user/alice/a;b=c/d',
      '/user/alice/%3b%3f%23%25',
    ]);
    expect(statuses).toEqual([200, 200, 200, 200, 200, 200]);
    expect(seen).toEqual([
      'alice:/user/alice/x%2Fy?z=%2f..%2f',
      'alice:/user/alice/%78',
      'alice:/user/alice/a//b',
      'alice:/user/alice/%252e%252e/bob',
      'alice:/user/alice/a;b=c/d',
      'alice:/user/alice/%3b%3f%23%25',
    ]);
  });

  test('row 13: an absolute request target is 400, whatever host it names', async () => {
    const targets = ['http://hub.test/user/bob/', 'http://evil.example/user/alice/'];
    expect(await ask(targets)).toEqual({ statuses: [400, 400], seen: [] });
  });

  test('row 13: another case or a longer name is another path', async () => {
    const targets = ['/User/alice/', '/user/Alice/', '/user/alicex/', '/user/alice%20/'];
    expect(await ask(targets)).toEqual({ statuses: [404, 404, 404, 404], seen: [] });
  });

  test('row 14: names of object members are paths like any other', async () => {
    const { statuses, seen } = await ask([
      '/__proto__/x',
      '/constructor',
      '/user/__proto__/',
      '/user/toString',
      '/user/alice/__proto__',
      '/%E0%A4%A',
      '/user/alice/%',
    ]);
    expect(statuses).toEqual([404, 404, 404, 404, 200, 400, 400]);
    expect(seen).toEqual(['alice:/user/alice/__proto__']);
  });

  test('row 13: a prefix without its slash is redirected to our own path, not to another host', async () => {
    await using proxy = await startProxy();
    proxy.addService('open', 'http://127.0.0.1:1');
    const response = await rawRequest(
      proxy.port,
      head('POST /services/open?next=//evil', 'Connection: close', 'Content-Length: 0'),
    );
    expect(statusOf(response)).toBe(308);
    expect(response).toContain('location: /services/open/?next=//evil\r\n');
  });
});
