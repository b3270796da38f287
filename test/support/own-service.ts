import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { HubOAuth, type HubOAuthOptions, nodeListener } from '../../src/client/client.ts';
import type { TestHub } from './test-hub.ts';

/** An external service in the test's own process, so that its settings are the test's to choose. */
export interface OwnService extends AsyncDisposable {
  /** Its entry of `Hub.services`. */
  readonly config: Readonly<Record<string, unknown>>;
  readonly hubAuth: HubOAuth;
  /** Begins to answer: with the name of the visitor. */
  connect(hub: Pick<TestHub, 'url' | 'apiUrl'>, options?: HubOAuthOptions): HubOAuth;
}

/** Listens at once, and answers 500 until it knows its hub. */
export async function createOwnService(name: string): Promise<OwnService> {
  const apiToken = `token-of-the-service-${name}`;
  let hubAuth: HubOAuth | undefined;
  let answer: ReturnType<typeof nodeListener> | undefined;
  const server = createServer((request, response) => {
    if (answer === undefined) response.writeHead(500).end();
    else answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    config: {
      name,
      url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      api_token: apiToken,
      oauth_no_confirm: true,
    },
    get hubAuth() {
      if (hubAuth === undefined) throw new Error('the service knows no hub yet');
      return hubAuth;
    },
    connect(hub, options = {}) {
      hubAuth = new HubOAuth({
        service_name: name,
        api_token: apiToken,
        api_url: hub.apiUrl,
        hub_base_url: hub.url,
        environment: {},
        ...options,
      });
      answer = nodeListener(hubAuth, (_request, response, { user }) => {
        response.end(`visitor ${user.name}`);
      });
      return hubAuth;
    },
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
    },
  };
}
