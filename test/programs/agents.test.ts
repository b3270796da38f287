import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { createServer, type Server } from 'node:https';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { beforeAll, describe, expect, test } from 'vitest';
import type { FakeBrowser } from '../support/fake-browser.ts';
import { requires } from '../support/requires.ts';
import {
  createServerHub,
  createUsers,
  fixtureApp,
  getServer,
  serverPath,
} from '../support/server-hub.ts';
import { projectDirectory } from '../support/services.ts';
import { submitForm, type TestHub } from '../support/test-hub.ts';
import { selfSigned } from '../support/tls-front.ts';

const packages = join(projectDirectory, 'foreign', 'node_modules');
const foreign = createRequire(join(packages, 'any'));
const redirectUrl = 'http://127.0.0.1:33418/callback';

/** The parts of the SDK that the agent uses, of which no types are installed. */
interface Sdk {
  readonly Client: new (
    about: object,
  ) => {
    connect(transport: Transport): Promise<void>;
    callTool(call: object): Promise<{ readonly content: readonly { readonly text: string }[] }>;
    close(): Promise<void>;
  };
  readonly StreamableHTTPClientTransport: new (url: URL, options: object) => Transport;
  readonly StdioClientTransport: new (
    program: object,
  ) => Transport & { readonly stderr: AsyncIterable<Uint8Array> };
}
interface Transport {
  finishAuth(code: string): Promise<void>;
}

describe.runIf(requires('mcp-sdk', 'openssl'))('the SDK of the Model Context Protocol', () => {
  let hub: TestHub;
  let site: Server;
  let clientId: string;
  let sdk: Sdk;
  beforeAll(async () => {
    sdk = {
      ...foreign('@modelcontextprotocol/sdk/client/index.js'),
      ...foreign('@modelcontextprotocol/sdk/client/streamableHttp.js'),
      ...foreign('@modelcontextprotocol/sdk/client/stdio.js'),
    };
    const { key, cert } = selfSigned(['localhost']);
    const known = getCACertificates('default');
    setDefaultCACertificates([...known, cert.toString()]);
    site = createServer({ key, cert }, (_req, res) => {
      const about = { client_id: clientId, client_name: 'Test agent' };
      const redirect_uris = [redirectUrl, 'http://localhost/oauth/callback'];
      res.end(JSON.stringify({ ...about, redirect_uris }));
    });
    await once(site.listen(0, '127.0.0.1'), 'listening');
    clientId = `https://localhost:${(site.address() as AddressInfo).port}/agent.json`;
    hub = await createServerHub({
      Hub: { client_documents: 'any' },
      Spawner: { cmd: fixtureApp('mcp-server', packages) },
    });
    await createUsers(hub, 'ada');
    return async () => {
      await hub[Symbol.asyncDispose]();
      site.close();
      setDefaultCACertificates(known);
    };
  });

  /** Lets `ada` allow what is asked for; where her browser goes then. */
  async function allow(browser: FakeBrowser, url: string): Promise<string> {
    const page = await browser.open(url);
    expect(page.body).toContain('Test agent');
    expect(page.body).toContain(new URL(clientId).host);
    return (await submitForm(browser, page, { decision: 'allow' })).headers.location ?? '';
  }

  /** Keeps what the SDK finds out, as any agent does, and lets `ada` allow it. */
  function provider() {
    const kept: Record<string, unknown> = {};
    const keep = (name: string) => (value: unknown) => {
      kept[name] = value;
    };
    let code: string | undefined;
    return {
      kept,
      code: () => code ?? '',
      clientMetadataUrl: clientId,
      redirectUrl,
      clientMetadata: { redirect_uris: [redirectUrl] },
      clientInformation: () => kept['client'],
      saveClientInformation: keep('client'),
      tokens: () => kept['tokens'],
      saveTokens: keep('tokens'),
      codeVerifier: () => kept['verifier'],
      saveCodeVerifier: keep('verifier'),
      async redirectToAuthorization(url: URL) {
        const location = await allow(await hub.logIn('ada'), url.href);
        code = new URL(location).searchParams.get('code') ?? undefined;
      },
    };
  }

  test('calls a tool of a stopped server after its user allowed it, with nothing registered', async () => {
    const url = new URL(`${hub.url}user/ada/mcp`);
    const authProvider = provider();
    const transport = () => new sdk.StreamableHTTPClientTransport(url, { authProvider });
    const about = { name: 'agent', version: '1.0.0' };
    const first = transport();
    await expect(new sdk.Client(about).connect(first)).rejects.toThrow('Unauthorized');
    await first.finishAuth(authProvider.code());

    const client = new sdk.Client(about);
    await client.connect(transport());
    const { content } = await client.callTool({ name: 'whoami', arguments: {} });
    expect(content).toMatchObject([{ text: 'ada' }]);
    expect((await getServer(hub, serverPath('ada'))).ready).toBe(true);
    await client.close();
    expect(hub.logLines).toContainEqual(
      expect.objectContaining({
        msg: 'forwarded',
        user: 'ada',
        client: clientId,
        route: '/user/ada/',
        method: 'POST',
      }),
    );

    // An hour later.
    authProvider.kept['tokens'] = { ...Object(authProvider.kept['tokens']), access_token: 'hub_x' };
    const later = new sdk.Client(about);
    await later.connect(transport());
    await later.close();
    expect(authProvider.kept['tokens']).toMatchObject({
      access_token: expect.not.stringMatching(/^hub_x$/),
    });
  });

  test('calls it through mcp-remote, for programs that only speak to their own machine', async () => {
    await using home = await mkdtempDisposable(join(tmpdir(), 'mcp-remote-'));
    const transport = new sdk.StdioClientTransport({
      command: process.execPath,
      args: [
        join(packages, 'mcp-remote/dist/proxy.js'),
        `${hub.url}user/ada/mcp`,
        '--client-metadata-url',
        clientId,
      ],
      // Its browser is the one below, to which it writes the same address.
      env: { HOME: home.path, PATH: process.env['PATH'], BROWSER: 'true' },
      stderr: 'pipe',
    });
    const client = new sdk.Client({ name: 'program', version: '1.0.0' });
    const isConnected = client.connect(transport);
    let said = '';
    for await (const chunk of transport.stderr) {
      said += Buffer.from(chunk).toString();
      const [url] = /http\S+\/authorize\?\S+(?=\s)/.exec(said) ?? [];
      if (url === undefined) continue;
      const browser = await hub.logIn('ada');
      await browser.open(await allow(browser, url));
      break;
    }
    await isConnected;
    const { content } = await client.callTool({ name: 'whoami', arguments: {} });
    expect(content, said).toMatchObject([{ text: 'ada' }]);
    await client.close();
  });
});
