import { Secret } from '../../src/platform/config/secret.ts';
import { gatewayTokens } from '../../src/traffic/gateway/gateway-settings.ts';
import { type HubProcess, spawnHubProcess } from './hub-process.ts';
import { type TestHub, testCookieSecret, until } from './test-hub.ts';

/** A gateway that runs as a process of its own, for a hub that runs in the test. */
export interface TestGateway extends HubProcess {
  /** Public base URL, ends in a slash. */
  readonly url: string;
}

/** The token of gateways that a test hub starts itself: they reach its loopback addresses. */
export const ownGatewayToken = gatewayTokens([new Secret(testCookieSecret)])[0]?.reveal() ?? '';

/** Starts `hub gateway` for a test hub, at the hub's public URL, and waits until it is ready. */
export async function startGateway(
  hub: Pick<TestHub, 'apiUrl' | 'directory' | 'url'>,
  options: {
    readonly token?: string;
    readonly hubUrl?: string;
    readonly args?: readonly string[];
  } = {},
): Promise<TestGateway> {
  const {
    token = ownGatewayToken,
    hubUrl = hub.apiUrl.replace(/hub\/api$/, ''),
    args = [],
  } = options;
  const gateway = spawnHubProcess(
    ['gateway', '--hub', hubUrl, '--bind', hub.url, '--log-level', 'debug', ...args],
    { cwd: hub.directory, env: { HUB_GATEWAY_TOKEN: token } },
  );
  let isOver = false;
  void gateway.exited.then(() => {
    isOver = true;
  });
  await until(
    () => isOver || gateway.stdout().includes('The gateway is ready at'),
    'gateway ready',
  );
  if (isOver) throw new Error(`the gateway ended: ${gateway.stderr()}`);
  return { ...gateway, url: hub.url };
}

/** A configuration in which the service `edge` may be a gateway, on whatever machine. */
export const edgeService = {
  services: [{ name: 'edge', api_token: 'token-of-the-edge' }],
  load_roles: [{ name: 'gateways', scopes: ['gateway'], services: ['edge'] }],
} as const;
