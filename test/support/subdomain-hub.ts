import { freePort } from './free-port.ts';
import { createTestHub, type TestHub, type TestHubConfig } from './test-hub.ts';
import { startTlsFront } from './tls-front.ts';

/** A whole hub at `http://hub.localhost:<port>/` that gives each user and service an origin below it. */
export async function createSubdomainHub(config: TestHubConfig = {}): Promise<TestHub> {
  const port = await freePort();
  return createHubAt(`http://hub.localhost:${port}`, port, config);
}

/** The same behind TLS, with a wildcard certificate that nobody has signed. */
export async function createTlsSubdomainHub(config: TestHubConfig = {}): Promise<TestHub> {
  const port = await freePort();
  const front = await startTlsFront(['hub.localhost', '*.hub.localhost'], port);
  try {
    const hub = await createHubAt(`https://hub.localhost:${front.port}`, port, config);
    return {
      ...hub,
      async [Symbol.asyncDispose]() {
        await hub[Symbol.asyncDispose]();
        await front[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await front[Symbol.asyncDispose]();
    throw error;
  }
}

function createHubAt(origin: string, port: number, config: TestHubConfig): Promise<TestHub> {
  return createTestHub({
    ...config,
    Hub: {
      cleanup_servers: true,
      bind_url: `http://127.0.0.1:${port}/`,
      public_url: `${origin}/`,
      subdomain_host: origin,
      ...config.Hub,
    },
  });
}

/** The origin of a label below that of the hub. */
export function originBelow(hub: Pick<TestHub, 'url'>, label: string): string {
  return hub.url.replace('//', `//${label}.`).replace(/\/$/, '');
}
