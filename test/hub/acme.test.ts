import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../support/free-port.ts';
import { createHubFolder, type HubFolder } from '../support/hub-process.ts';
import { hasPebble, type Pebble, startPebble, visit } from '../support/pebble.ts';
import { until } from '../support/test-hub.ts';

describe.skipIf(!hasPebble()).each([
  ['tls-alpn-01', 0],
  ['http-01', 1],
] as const)('a certificate by %s, with %i gateways', (challenge, gateways) => {
  let pebble: Pebble;
  let folder: HubFolder;
  let ca: string;
  beforeAll(async () => {
    pebble = await startPebble();
    ca = await pebble.root();
    folder = await createHubFolder();
  });
  afterAll(async () => {
    await folder[Symbol.asyncDispose]();
    await pebble[Symbol.asyncDispose]();
  });

  /** Status of a page over https, with whatever certificate of the authority; or why there was none. */
  const ask = () =>
    visit('hub.example.org', pebble.ports.tls, ca).then(
      ({ status }) => String(status),
      (error: Error) => error.message,
    );

  test('comes by itself to an empty folder, and serves without the authority', async () => {
    await folder.configure({
      Hub: {
        public_url: `https://hub.example.org/`,
        bind_url: `https://127.0.0.1:${pebble.ports.tls}/`,
        redirect_bind_url: `http://127.0.0.1:${pebble.ports.http}/`,
        gateways,
        gateway_linger: 0,
        acme: { accept_terms: true, directory: pebble.directory, challenge },
      },
    });
    const env = { NODE_EXTRA_CA_CERTS: pebble.certificateFile };
    expect((await folder.run(['check', '--acme'], '', env)).stdout).toContain(
      'gives a certificate for hub.example.org.',
    );
    await using hub = await folder.start(undefined, env);
    await until(async () => (await ask()) === '200', 'an answer over https');
    expect(hub.logged(/^certificate renewed by ACME/)).toHaveLength(1);
    await hub.end();
    await pebble.end();
    await using next = await folder.start();
    expect(await ask()).toBe('200');
    expect(next.logged(/ACME/)).toEqual([]);
  });

  test('that cannot be got keeps nobody from the machine itself, and is explained', async () => {
    const directory = `https://localhost:${await freePort()}/dir`;
    await folder.configure({
      Hub: {
        database_url: 'sqlite:another.sqlite',
        public_url: `https://hub.example.org/`,
        bind_url: `https://127.0.0.1:${pebble.ports.tls}/`,
        acme: { accept_terms: true, directory },
      },
    });
    await using hub = await folder.start();
    await until(() => hub.logged(/^no certificate/).length > 0, 'the reason in the log');
    expect(await ask()).not.toBe('200');
    expect((await fetch(`${folder.apiUrl}/health`)).status).toBe(200);
    expect((await folder.run(['doctor'])).stdout).toMatch(
      new RegExp(
        `FAILED +certificate by ACME +an attempt failed, .*${directory} gives no answer: `,
      ),
    );
    const check = await folder.run(['check', '--acme']);
    expect([check.code, check.stderr]).toEqual([1, expect.stringContaining('gives no answer')]);
  });
});
