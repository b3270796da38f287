import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { head, rawRequest, startProxy, statusOf } from '../../../test/attacks/proxy-harness.ts';
import { requires } from '../../../test/support/requires.ts';
import { selfSigned } from '../../../test/support/tls-front.ts';

describe.skipIf(!requires('openssl'))('an upstream with TLS', () => {
  const names: (string | undefined)[] = [];
  let cert: Buffer;
  let server: Server;
  let port: number;
  const trusted = getCACertificates('default');

  beforeAll(async () => {
    const made = selfSigned(['localhost']);
    ({ cert } = made);
    server = createServer(
      {
        ...made,
        SNICallback(name, callback) {
          names.push(name);
          callback(null);
        },
      },
      (req, res) => void res.end(`${req.headers.host} ${req.url}`),
    );
    await once(server.listen(0, '127.0.0.1'), 'listening');
    ({ port } = server.address() as AddressInfo);
  });

  afterAll(async () => {
    setDefaultCACertificates(trusted);
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  test('whose certificate no authority has signed is not spoken to', async () => {
    await using proxy = await startProxy();
    proxy.addService('a', `https://localhost:${port}`);
    const answer = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    expect(statusOf(answer)).toBe(502);
    expect(proxy.errors[0]?.cause).toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  });

  test('is checked by its own name, and told the one that the client asked for', async () => {
    setDefaultCACertificates([...trusted, cert.toString()]);
    await using proxy = await startProxy();
    proxy.addService('a', `https://localhost:${port}`);
    names.length = 0;
    for (const path of ['/services/a/1', '/services/a/2']) {
      const answer = await rawRequest(proxy.port, head(`GET ${path}`, 'Connection: close'));
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 200 [\\s\\S]*\\S+ ${path}$`));
      expect(answer).not.toContain(`localhost:${port} `);
    }
    expect(names).toEqual(['localhost']);
  });

  test('of another name is refused', async () => {
    setDefaultCACertificates([...trusted, cert.toString()]);
    await using proxy = await startProxy();
    proxy.addService('a', `https://127.0.0.1:${port}`);
    const answer = await rawRequest(proxy.port, head('GET /services/a/', 'Connection: close'));
    expect(statusOf(answer)).toBe(502);
    expect(proxy.errors[0]?.cause).toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
  });
});
