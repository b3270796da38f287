import { type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import {
  allowInsecureRequests,
  processResourceDiscoveryResponse,
  resourceDiscoveryRequest,
} from 'oauth4webapi';
import { beforeAll, describe, expect, test } from 'vitest';
import { startUpstream } from '../attacks/proxy-harness.ts';
import {
  adminToken,
  createServerHub,
  createUsers,
  getServer,
  serverPath,
  startUntilReady,
  tokenOf,
} from '../support/server-hub.ts';
import { untilState } from '../support/services.ts';
import type { TestHub } from '../support/test-hub.ts';

let hub: TestHub;
let origin: string;
beforeAll(async () => {
  const app = await startUpstream((_req, res) => {
    res.end('the app');
  });
  hub = await createServerHub({
    Hub: { services: [{ name: 'wiki', url: app.url, access: 'gateway' }] },
    Spawner: { access: 'server' },
    Proxy: {
      extra_routes: {
        '/tool/': { target: app.url, access: 'gateway' },
        'tool.test/': { target: app.url, access: 'gateway' },
        '/open/': { target: app.url, access: 'public' },
      },
    },
  });
  ({ origin } = new URL(hub.url));
  await createUsers(hub, 'ada', 'bob', 'carl');
  await startUntilReady(hub, serverPath('ada'));
  await untilState(hub, 'wiki', 'ready');
  return async () => {
    await hub[Symbol.asyncDispose]();
    await app[Symbol.asyncDispose]();
  };
});

/** What clients of the Model Context Protocol say that they take. */
const agent = { accept: 'application/json, text/event-stream' };

interface Answer {
  readonly status: number | undefined;
  readonly challenge: string;
  readonly body: string;
}

/** As a program that says nothing of itself but this. */
async function ask(path: string, headers: Record<string, string> = agent): Promise<Answer> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    request(hub.url + path, { headers }, resolve)
      .on('error', reject)
      .end();
  });
  const challenge = answer.headers['www-authenticate'] ?? '';
  return { status: answer.statusCode, challenge, body: await text(answer) };
}

const metadataUrlIn = ({ challenge }: Answer) => /resource_metadata="([^"]+)"/.exec(challenge)?.[1];

describe.each(['services/wiki/mcp', 'tool/', 'user/ada/a%20b/mcp'])('at %s', (path) => {
  test('§5.1 a request without a token is told where the metadata is, and §3.3 it is that of the URL asked for', async () => {
    const answer = await ask(`${path}?a=b`);
    expect(answer.status).toBe(401);
    expect(answer.challenge).toMatch(/^Bearer /);
    const response = await fetch(metadataUrlIn(answer) ?? '');
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(await response.json()).toEqual({
      resource: hub.url + path,
      authorization_servers: [origin],
      scopes_supported: ['identify'],
      bearer_methods_supported: ['header'],
    });
  });

  test('§5.1 one that is not valid too, and RFC 6750 §3.1 that it is not', async () => {
    const { status, challenge } = await ask(path, { ...agent, authorization: 'Bearer hub_gone' });
    expect(status).toBe(401);
    expect(challenge).toMatch(/^Bearer .*error="invalid_token", resource_metadata="http/);
  });

  test('§3.1 oauth4webapi finds it at the well-known URI that the resource alone leads to', async () => {
    const resource = new URL(hub.url + path);
    const response = await resourceDiscoveryRequest(resource, { [allowInsecureRequests]: true });
    const metadata = await processResourceDiscoveryResponse(resource, response);
    expect(metadata.authorization_servers).toEqual([origin]);
  });
});

test('a program that may have a password is offered both, and a browser neither', async () => {
  const program = await ask('services/wiki/', { accept: 'application/json' });
  expect(program.challenge).toMatch(/^Basic realm="hub", Bearer realm="hub", resource_metadata=/);
  const script = { accept: '*/*', 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };
  expect((await ask('services/wiki/', script)).challenge).toBe('Bearer realm="hub"');
});

test('§3.1 a route on a host of its own has its metadata there, without a path', async () => {
  const known = '.well-known/oauth-protected-resource';
  const { body } = await ask(known, { host: 'tool.test' });
  expect(JSON.parse(body)).toMatchObject({
    resource: expect.stringMatching(/\/\/tool\.test.*\/$/),
  });
});

test("an agent that calls a stopped server without a token is told the same, and with its user's starts it", async () => {
  const path = 'user/bob/mcp';
  const refused = await ask(path);
  expect(refused.status).toBe(401);
  expect(metadataUrlIn(refused)).toBe(`${hub.url}.well-known/oauth-protected-resource/${path}`);
  const call = (token: string, headers = agent) =>
    fetch(hub.url + path, { headers: { ...headers, authorization: `Bearer ${token}` } });
  const token = await tokenOf(hub, 'bob');
  expect((await call(token, { accept: 'application/json' })).status).toBe(424);
  expect((await call(await tokenOf(hub, 'ada'))).status).toBe(424);
  expect((await hub.api(serverPath('bob'), adminToken)).status).toBe(404);
  const answer = await call(token);
  expect(answer.status).toBe(200);
  expect((await getServer(hub, serverPath('bob'))).ready).toBe(true);
});

test('a server that is stopped says as much as one that nobody has, and an open route nothing', async () => {
  const known = '.well-known/oauth-protected-resource';
  for (const name of ['carl', 'nobody']) {
    const { body } = await ask(`${known}/user/${name}/`);
    expect(JSON.parse(body)).toMatchObject({ resource: `${hub.url}user/${name}/` });
  }
  for (const path of ['open/', 'hub/', 'elsewhere']) {
    expect((await ask(`${known}/${path}`)).status).toBe(404);
  }
});
