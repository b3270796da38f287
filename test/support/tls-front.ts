import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { pathOf } from './requires.ts';

/** Ends TLS before a port of this machine, and changes nothing of what goes through. */
export interface TlsFront extends AsyncDisposable {
  readonly port: number;
  readonly certificate: Buffer;
}

/** Listens with a certificate of its own for these names, which may begin with `*.`. */
export async function startTlsFront(
  names: readonly string[],
  targetPort: number,
  { days = 2 }: { readonly days?: number } = {},
): Promise<TlsFront> {
  const { key, cert: certificate } = selfSigned(names, days);
  const server = createServer({ key, cert: certificate }, (secure) => {
    const plain = connect(targetPort, '127.0.0.1');
    secure.on('error', () => plain.destroy());
    plain.on('error', () => secure.destroy());
    secure.pipe(plain).pipe(secure);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    certificate,
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      server.close();
    },
  };
}

/** A key and a certificate that an authority gives out for them. */
export function issuedBy(
  authority: ReturnType<typeof selfSigned>,
  name: string,
): { readonly key: Buffer; readonly cert: Buffer } {
  const directory = mkdtempSync(join(tmpdir(), 'hub-certificate-'));
  const file = (part: string) => join(directory, `${part}.pem`);
  const openssl = (...args: string[]) => execFileSync(pathOf('openssl'), args, { stdio: 'ignore' });
  try {
    writeFileSync(file('ca'), Buffer.concat([authority.cert, authority.key]));
    openssl('genpkey', '-algorithm', 'ed25519', '-out', file('key'));
    openssl('req', '-new', '-key', file('key'), '-subj', `/CN=${name}`, '-out', file('request'));
    openssl(
      ...['x509', '-req', '-in', file('request'), '-CA', file('ca'), '-CAkey', file('ca')],
      ...['-CAcreateserial', '-days', '2', '-out', file('cert')],
    );
    return { key: readFileSync(file('key')), cert: readFileSync(file('cert')) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** A key and a certificate for these names. */
export function selfSigned(
  names: readonly string[],
  days = 2,
): {
  readonly key: Buffer;
  readonly cert: Buffer;
} {
  const directory = mkdtempSync(join(tmpdir(), 'hub-certificate-'));
  const [key, cert] = [join(directory, 'key.pem'), join(directory, 'certificate.pem')];
  try {
    const subject = ['-subj', `/CN=${names[0] ?? ''}`];
    const alternatives = `subjectAltName=${names.map((name) => `DNS:${name}`).join(',')}`;
    execFileSync(
      pathOf('openssl'),
      [
        ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'],
        ...[
          '-days',
          String(days),
          '-keyout',
          key,
          '-out',
          cert,
          ...subject,
          '-addext',
          alternatives,
        ],
      ],
      { stdio: 'ignore' },
    );
    return { key: readFileSync(key), cert: readFileSync(cert) };
  } finally {
    rmSync(directory, { recursive: true });
  }
}
