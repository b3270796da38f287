import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocketServer } from 'ws';
import { hasChromium, startChromium } from '../support/chromium.ts';
import { freePort } from '../support/free-port.ts';
import { pathOf, requires } from '../support/requires.ts';
import { createTestHub, type TestHub } from '../support/test-hub.ts';
import { selfSigned } from '../support/tls-front.ts';

const streams = 10;
/** Opens event streams as many tabs would, and a WebSocket beside them. */
const page = `<!doctype html><title>app</title><script>
const opened = Array.from({ length: ${streams} }, (_, index) => new Promise((resolve) => {
  new EventSource('events?' + index).onmessage = ({ data }) => resolve(data);
}));
opened.push(new Promise((resolve) => {
  const socket = new WebSocket('socket');
  socket.onopen = () => socket.send('by socket');
  socket.onmessage = ({ data }) => resolve(data);
}));
const [{ nextHopProtocol }] = performance.getEntriesByType('navigation');
Promise.all(opened).then((heard) => { window.heard = [nextHopProtocol, ...heard]; });
</script>`;

describe.skipIf(!requires('openssl'))('TLS and HTTP/2 as the programs of others see them', () => {
  let directory = '';
  let port = 0;
  let hub: TestHub;
  const app = createServer((req, res) => {
    if (req.url?.startsWith('/app/events') === true) {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(`data: ${req.url}\n\n`);
    } else {
      res.setHeader('content-type', 'text/html').end(page);
    }
  });
  new WebSocketServer({ server: app }).on('connection', (socket) =>
    socket.on('message', (data) => socket.send(String(data))),
  );

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hub-tls-programs-'));
    const { cert, key } = selfSigned(['hub.localhost'], 90);
    await writeFile(join(directory, 'hub.pem'), cert);
    await writeFile(join(directory, 'hub.key'), key, { mode: 0o600 });
    await once(app.listen(0, '127.0.0.1'), 'listening');
    port = await freePort();
    const target = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
    hub = await createTestHub(
      {
        Hub: {
          bind_url: `https://127.0.0.1:${port}/`,
          public_url: `https://hub.localhost:${port}/`,
          http2: true,
          certificates: [{ certificate: 'hub.pem', key: 'hub.key' }],
        },
        Proxy: { extra_routes: { '/app/': { target, access: 'public' } } },
      },
      { directory },
    );
  });
  afterAll(async () => {
    await hub?.[Symbol.asyncDispose]();
    app.closeAllConnections();
    app.close();
  });

  const run = async (program: Parameters<typeof pathOf>[0], ...args: string[]) =>
    (await promisify(execFile)(pathOf(program), args)).stdout;

  test.skipIf(!requires('sslscan'))(
    'sslscan finds no protocol and no cipher that is weak',
    async () => {
      const report = await run('sslscan', '--no-colour', `127.0.0.1:${port}`);
      const enabled = [...report.matchAll(/^((?:SSL|TLS)v\S+) +enabled/gm)].map(([, name]) => name);
      expect(enabled).toEqual(['TLSv1.2', 'TLSv1.3']);
      const ciphers = [...report.matchAll(/^(?:Preferred|Accepted) .* bits +(\S+)/gm)];
      expect(ciphers.length).toBeGreaterThan(3);
      for (const [, name] of ciphers) expect(name).toMatch(/GCM|CHACHA20/);
      expect(report).toContain('Session renegotiation not supported');
      expect(report).not.toMatch(/[^t] vulnerable to heartbleed/);
    },
  );

  test.skipIf(!requires('testssl'))(
    'testssl.sh finds nothing of medium severity or higher',
    async () => {
      const file = join(directory, 'testssl.json');
      const parts = ['-p', '-s', '-f', '-S', '-P', '-U', '-h'];
      const settings = ['--quiet', '--warnings', 'off', '--severity', 'MEDIUM', '--fast'];
      const where = ['--ip', '127.0.0.1', `https://hub.localhost:${port}/`];
      // Its status is the number of findings.
      await run('testssl', ...parts, ...settings, '--jsonfile', file, ...where).catch(() => '');
      const findings = JSON.parse(await readFile(file, 'utf8')) as {
        id: string;
        severity: string;
      }[];
      expect(findings.filter(({ severity }) => severity !== 'WARN').map(({ id }) => id)).toEqual([
        // The certificate is of the test itself.
        'cert_chain_of_trust',
        'cert_revocation',
      ]);
    },
  );

  test.skipIf(!requires('nghttp'))(
    'nghttp gets an app and a page over one connection',
    async () => {
      const origin = `https://127.0.0.1:${port}`;
      const said = await run(
        'nghttp',
        '-nv',
        '--no-verify-peer',
        `${origin}/app/`,
        `${origin}/hub/login`,
      );
      expect(said.match(/:status: 200/g)).toHaveLength(2);
      expect(said.match(/negotiated protocol: h2/g)).toHaveLength(1);
    },
  );

  test.skipIf(!hasChromium())(
    'Chromium has event streams of many tabs and a WebSocket beside them',
    async () => {
      await using browser = await startChromium({
        acceptsEveryCertificate: true,
        hosts: { 'hub.localhost': port },
      });
      const tab = await browser.newPage();
      await tab.goto(`${hub.url}app/`);
      const heard = await (await tab.waitForFunction('window.heard')).jsonValue();
      expect(heard).toEqual([
        'h2',
        ...Array.from({ length: streams }, (_, index) => `/app/events?${index}`),
        'by socket',
      ]);
    },
  );
});
