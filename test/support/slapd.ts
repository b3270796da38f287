import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client } from 'ldapts';
import { freePort } from './free-port.ts';
import { pathOf, requires } from './requires.ts';
import { until } from './test-hub.ts';

/** A real directory on loopback: `dc=example,dc=org` with people and groups. */
export interface Slapd extends AsyncDisposable {
  /** Takes passwords over StartTLS only. */
  readonly ldapUrl: string;
  readonly ldapsUrl: string;
  /** PEM of the certificate that vouches for it. */
  readonly ca: string;
  readonly bindDn: string;
  readonly bindPassword: string;
  /** Changes entries, as an administrator of the directory would. */
  administer(work: (client: Client) => Promise<void>): Promise<void>;
  stop(): Promise<void>;
}

/** Whether slapd is installed; see requires. */
export function hasSlapd(): boolean {
  return requires('slapd', 'openssl');
}

const bindDn = 'cn=hub,dc=example,dc=org';
const bindPassword = 'the-hub-may-look';

/** Starts a directory with the entries given after its root. */
export async function startSlapd(entries: string): Promise<Slapd> {
  const directory = mkdtempSync(join(tmpdir(), 'hub-slapd-'));
  const at = (name: string) => join(directory, name);
  const [plainPort, tlsPort] = [await freePort(), await freePort()];
  mkdirSync(at('data'));
  execFileSync(
    pathOf('openssl'),
    ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2']
      .concat(['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'])
      .concat(['-keyout', at('key.pem'), '-out', at('cert.pem')]),
    { stdio: 'ignore' },
  );
  writeFileSync(at('slapd.conf'), configuration(directory));
  writeFileSync(at('entries.ldif'), `${root}\n${entries}`);
  execFileSync(join(dirname(pathOf('slapd')), 'slapadd'), [
    '-f',
    at('slapd.conf'),
    '-l',
    at('entries.ldif'),
  ]);

  const addresses = `ldap://127.0.0.1:${plainPort} ldaps://127.0.0.1:${tlsPort}`;
  const server = spawn(pathOf('slapd'), ['-f', at('slapd.conf'), '-h', addresses, '-d', '0'], {
    stdio: 'ignore',
  });
  const endWithProcess = () => server.kill('SIGKILL');
  process.once('exit', endWithProcess);
  await until(() => answers(tlsPort), 'slapd listens');

  async function stop(): Promise<void> {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const exit = once(server, 'exit');
    server.kill('SIGKILL');
    await exit;
  }

  return {
    ldapUrl: `ldap://127.0.0.1:${plainPort}`,
    ldapsUrl: `ldaps://localhost:${tlsPort}`,
    ca: readFileSync(at('cert.pem'), 'utf8'),
    bindDn,
    bindPassword,
    async administer(work) {
      const ca = readFileSync(at('cert.pem'), 'utf8');
      const client = new Client({ url: `ldaps://localhost:${tlsPort}`, tlsOptions: { ca } });
      await client.bind('cn=root,dc=example,dc=org', 'root');
      await work(client);
      await client.unbind();
    },
    stop,
    async [Symbol.asyncDispose]() {
      process.off('exit', endWithProcess);
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function configuration(directory: string): string {
  return `
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/nis.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile ${directory}/cert.pem
TLSCertificateKeyFile ${directory}/key.pem
security simple_bind=64
database mdb
suffix "dc=example,dc=org"
rootdn "cn=root,dc=example,dc=org"
rootpw root
directory ${directory}/data
access to attrs=userPassword by anonymous auth by * none
access to * by users read by * none
`;
}

const root = `dn: dc=example,dc=org
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=people,dc=example,dc=org
objectClass: organizationalUnit
ou: people

dn: ou=groups,dc=example,dc=org
objectClass: organizationalUnit
ou: groups

dn: ${bindDn}
objectClass: person
cn: hub
sn: hub
userPassword: ${bindPassword}
`;

async function answers(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const isOpen = await Promise.race([
    once(socket, 'connect').then(() => true),
    once(socket, 'error').then(() => false),
  ]).catch(() => false);
  socket.destroy();
  return isOpen;
}
