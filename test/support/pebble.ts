import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import https from 'node:https';
import { join } from 'node:path';
import { TLSSocket } from 'node:tls';
import { Agent, fetch as undiciFetch } from 'undici';
import { expect } from 'vitest';
import { freePort } from './free-port.ts';
import { memoryFolder } from './memory-folder.ts';
import { pathOf, requires } from './requires.ts';
import { selfSigned } from './tls-front.ts';

export const hasPebble = (): boolean => requires('pebble', 'openssl');

/** Pebble, the authority that Let's Encrypt tests clients with, with a DNS server in which every name is this machine. */
export interface Pebble extends AsyncDisposable {
  readonly directory: string;
  /** The port of `directory`. */
  readonly port: number;
  /** Where it looks for http-01 and tls-alpn-01, at 127.0.0.1. */
  readonly ports: { readonly http: number; readonly tls: number };
  /** Trusts its certificate. */
  readonly fetch: typeof fetch;
  /** File of that. */
  readonly certificateFile: string;
  /** The certificate with which it signs others, in PEM. */
  root(): Promise<string>;
  /** Calls of this, with `/add-txt` and the like, change what its DNS server says. */
  readonly dnsUrl: string;
  end(): Promise<void>;
  /** Forgets accounts, orders and its key. */
  restart(): Promise<void>;
}

/** Starts it as it is hardest on clients: half of the nonces are refused. */
export async function startPebble({
  address = '127.0.0.1',
  names = [],
  externalAccounts,
  lifeSeconds,
}: {
  /** Where it listens, such as 0.0.0.0 for clients in containers. */
  readonly address?: string;
  /** What those call it, beside localhost. */
  readonly names?: readonly string[];
  readonly externalAccounts?: Readonly<Record<string, string>>;
  /** Of its certificates; five years unless told otherwise. */
  readonly lifeSeconds?: number;
} = {}): Promise<Pebble> {
  const folder = await mkdtemp(join(memoryFolder(), 'pebble-'));
  const [port = 0, management, httpPort, tlsPort, dns, dnsManagement] = await Promise.all(
    Array.from({ length: 6 }, () => freePort()),
  );
  const { key, cert } = selfSigned(['localhost', ...names]);
  const at = (name: string) => join(folder, name);
  await writeFile(at('key.pem'), key);
  await writeFile(at('cert.pem'), cert);
  const pebble = {
    listenAddress: `${address}:${port}`,
    managementListenAddress: `127.0.0.1:${management}`,
    certificate: at('cert.pem'),
    privateKey: at('key.pem'),
    httpPort,
    tlsPort,
    externalAccountBindingRequired: externalAccounts !== undefined,
    externalAccountMACKeys: externalAccounts,
    certificateValidityPeriod: lifeSeconds,
  };
  await writeFile(at('pebble.json'), JSON.stringify({ pebble }));

  const challtestsrv = spawn(
    `${pathOf('pebble')}-challtestsrv`,
    [
      ...['-dns01', `127.0.0.1:${dns}`, '-management', `127.0.0.1:${dnsManagement}`],
      ...['-http01', '', '-https01', '', '-tlsalpn01', '', '-defaultIPv6', ''],
    ],
    { stdio: 'ignore' },
  );
  const directory = `https://localhost:${port}/dir`;
  const agent = new Agent({ connect: { ca: cert } });
  const trusting = ((url: string, init: object) =>
    undiciFetch(url, { ...init, dispatcher: agent })) as unknown as typeof fetch;

  async function start() {
    const child = spawn(
      pathOf('pebble'),
      ['-config', at('pebble.json'), '-strict', '-dnsserver', `127.0.0.1:${dns}`],
      {
        stdio: 'ignore',
        env: { PEBBLE_WFE_NONCEREJECT: '50', PEBBLE_VA_NOSLEEP: '1', PEBBLE_AUTHZREUSE: '0' },
      },
    );
    for (let isUp = false; !isUp; ) {
      if (child.exitCode !== null) throw new Error(`pebble ended with ${child.exitCode}`);
      isUp = await trusting(directory).then(
        () => true,
        () => false,
      );
    }
    return child;
  }
  let child = await start();

  async function kill(program: typeof child) {
    if (program.signalCode !== null || !program.kill('SIGKILL')) return;
    await once(program, 'exit');
  }
  const end = () => kill(child);
  return {
    directory,
    port,
    ports: { http: httpPort ?? 0, tls: tlsPort ?? 0 },
    fetch: trusting,
    certificateFile: at('cert.pem'),
    root: async () => await (await trusting(`https://localhost:${management}/roots/0`)).text(),
    dnsUrl: `http://127.0.0.1:${dnsManagement}`,
    end,
    async restart() {
      await end();
      child = await start();
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([end(), kill(challtestsrv)]);
      await agent.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** What a visitor of a name is answered at a port of this machine: over https when there is an authority to trust. */
export async function visit(host: string, port: number, ca?: string) {
  const { request } = ca === undefined ? http : https;
  const asked = request({
    ...{ host: '127.0.0.1', port, path: '/hub/login', headers: { host }, agent: false },
    ...(ca === undefined ? {} : { servername: host, ca }),
  }).end();
  const [answer] = (await once(asked, 'response')) as [http.IncomingMessage];
  const { socket } = answer.resume();
  const certificate = socket instanceof TLSSocket ? socket.getPeerCertificate() : undefined;
  return {
    status: answer.statusCode,
    location: answer.headers.location,
    issuer: certificate?.issuer.CN,
    names: certificate?.subjectaltname,
    serialNumber: certificate?.serialNumber,
  };
}

/** What `visit` sees of a certificate that Pebble gave out for a name. */
export const issuedByPebble = (name: string) => ({
  issuer: expect.stringMatching(/^Pebble Intermediate CA /),
  names: `DNS:${name}`,
});
