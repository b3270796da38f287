import { freePort } from './free-port.ts';
import { createTestHub, type TestHub, type TestHubConfig } from './test-hub.ts';

/** A whole hub at `http://hub.localhost:<port>/` that gives each user and service an origin below it. */
export async function createSubdomainHub(config: TestHubConfig = {}): Promise<TestHub> {
  const port = await freePort();
  return createTestHub({
    ...config,
    Hub: {
      cleanup_servers: true,
      bind_url: `http://127.0.0.1:${port}/`,
      public_url: `http://hub.localhost:${port}/`,
      subdomain_host: `http://hub.localhost:${port}`,
      ...config.Hub,
    },
  });
}

/** The origin of a label below that of the hub. */
export function originBelow(hub: Pick<TestHub, 'url'>, label: string): string {
  return hub.url.replace('//', `//${label}.`).replace(/\/$/, '');
}
