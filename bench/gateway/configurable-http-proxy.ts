import { fileURLToPath } from 'node:url';
import { freePort } from '../../test/support/free-port.ts';
import { type PinnedProcess, startPinned } from './pinned-process.ts';

/** A running configurable-http-proxy. */
export interface ConfigurableHttpProxy extends AsyncDisposable {
  readonly process: PinnedProcess;
  readonly port: number;
}

/** Starts it as JupyterHub does. */
export async function startConfigurableHttpProxy(options: {
  readonly core: number;
  /** Prefixes without a slash at the end, and where each goes. */
  readonly routes: Readonly<Record<string, string>>;
}): Promise<ConfigurableHttpProxy> {
  const [port, apiPort] = [await freePort(), await freePort()];
  const manifest = import.meta.resolve('configurable-http-proxy/package.json');
  const token = 'bench';
  const proxyProcess = await startPinned({
    core: options.core,
    command: [
      process.execPath,
      fileURLToPath(new URL('bin/configurable-http-proxy', manifest)),
      `--port=${port}`,
      '--ip=127.0.0.1',
      `--api-port=${apiPort}`,
      '--api-ip=127.0.0.1',
      '--log-level=error',
    ],
    port: apiPort,
    environment: { CONFIGPROXY_AUTH_TOKEN: token },
  });
  for (const [prefix, target] of Object.entries(options.routes)) {
    const added = await fetch(`http://127.0.0.1:${apiPort}/api/routes${prefix}`, {
      method: 'POST',
      headers: { authorization: `token ${token}` },
      body: JSON.stringify({ target }),
    });
    if (added.status !== 201) throw new Error(`no route was added: ${added.status}`);
  }
  return {
    process: proxyProcess,
    port,
    [Symbol.asyncDispose]: () => proxyProcess[Symbol.asyncDispose](),
  };
}
