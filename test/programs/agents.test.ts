import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { beforeAll, describe, expect, test } from 'vitest';
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
    };
    const { key, cert } = selfSigned(['localhost']);
    const known = getCACertificates('default');
    setDefaultCACertificates([...known, cert.toString()]);
    site = createServer({ key, cert }, (_req, res) => {
      const about = { client_id: clientId, client_name: 'Test agent' };
      res.end(JSON.stringify({ ...about, redirect_uris: [redirectUrl] }));
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
        const browser = await hub.logIn('ada');
        const page = await browser.open(url.href);
        expect(page.body).toContain('Test agent');
        expect(page.body).toContain(new URL(clientId).host);
        const allowed = await submitForm(browser, page, { decision: 'allow' });
        code = new URL(allowed.headers.location ?? '').searchParams.get('code') ?? undefined;
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
});
