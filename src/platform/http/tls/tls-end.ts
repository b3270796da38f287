import { createHash, hkdfSync } from 'node:crypto';
import type { Socket } from 'node:net';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { dateOf, monotonicMs } from '../../concurrency/monotonic-clock.ts';
import { createPeriodic } from '../../concurrency/periodic.ts';
import type { Secret } from '../../config/secret.ts';
import { noteCertificate } from '../request-address.ts';
import { createCertificateChoice } from './certificate-choice.ts';
import type { CertificateSource } from './certificate-source.ts';
import { createContext, tlsSettings } from './secure-context.ts';

/** Ends TLS on connections that were accepted elsewhere. */
export interface TlsEnd extends Disposable {
  /** Begins the handshake. Whatever fails or takes too long costs the client its connection, and nothing else. */
  receive(socket: Socket): void;
  /** Lets sessions be resumed at whoever has the secret too: other instances, and those to come. */
  shareTickets(secret: Secret): void;
}

const handshakeTimeout = 10_000;
/** Two of these are how long a stolen key opens what was recorded of resumed sessions of TLS 1.2. */
const ticketKeyMs = 12 * 3_600_000;
const ticketKeyBytes = 48;
const ticketCheckMs = 60_000;
/** RFC 8737 §6.2. */
const challengeProtocol = 'acme-tls/1';
const recordHeaderBytes = 5;
const largestRecordBytes = 16_384;

export function createTlsEnd(deps: {
  readonly certificates: CertificateSource;
  /** The best first (RFC 7301); HTTP/1.1 alone unless given. */
  readonly protocols?: readonly string[];
  /** Gets connections whose handshake is over. */
  readonly established: (socket: TLSSocket) => void;
}): TlsEnd {
  const { certificates, protocols = ['http/1.1'], established } = deps;
  const choice = createCertificateChoice(certificates);
  const { clientAuthorities: ca } = certificates;
  const server = createServer({
    ...tlsSettings,
    handshakeTimeout,
    // Who shows none, or one of others, is let in: it is for the routes to refuse them.
    requestCert: ca !== undefined,
    rejectUnauthorized: false,
    // No session goes on that began under other authorities.
    sessionIdContext: createHash('sha256')
      .update(ca ?? '')
      .digest('hex')
      .slice(0, 32),
    ALPNProtocols: [...protocols],
    SNICallback: (name, answer) => answer(null, choice.contextFor(name)),
  });
  server.on('secureConnection', (socket) => {
    // Without authorities of its own Node would take those of browsers.
    const shown =
      ca !== undefined && socket.authorized ? socket.getPeerX509Certificate() : undefined;
    if (shown !== undefined) noteCertificate(socket, shown.raw.toString('base64'));
    established(socket);
  });
  server.on('tlsClientError', (_error, socket) => void socket.destroy());

  /** Shows the certificate of a challenge, which is all that the authority wants (RFC 8737 §3). */
  const challengeServer = createServer({
    ...tlsSettings,
    handshakeTimeout,
    ALPNProtocols: [challengeProtocol],
    SNICallback(name, answer) {
      const finding = certificates.findChallenge?.(name) ?? Promise.resolve(undefined);
      finding.then((pair) => answer(null, pair && createContext(pair))).catch(answer);
    },
  });
  challengeServer.on('secureConnection', (socket) => {
    // The authority may be gone already, and need not close.
    socket.on('error', () => undefined).destroySoon();
  });
  challengeServer.on('tlsClientError', (_error, socket) => void socket.destroy());

  let ticketSecret: Secret | undefined;
  let ticketKeys: TlsOptions['ticketKeys'];

  function takeTicketKey(): void {
    if (ticketSecret === undefined) return;
    const period = Math.floor(dateOf(monotonicMs()).getTime() / ticketKeyMs);
    const made = hkdfSync('sha256', ticketSecret.reveal(), 'hub', `tls ${period}`, ticketKeyBytes);
    ticketKeys = Buffer.from(made);
    server.setTicketKeys(ticketKeys);
  }

  /** Those who name no server get it. */
  function takeFirst(): void {
    const { first } = choice;
    if (first === undefined) return;
    const { certificate: cert, key } = first;
    server.setSecureContext({ ...tlsSettings, cert, key, ca, ticketKeys });
  }

  const checking = createPeriodic({
    intervalMs: ticketCheckMs,
    work: takeTicketKey,
    onError: () => {},
  });
  certificates.onChange(takeFirst);
  takeFirst();

  return {
    receive(socket) {
      // As of Node's own servers with TLS: a client that leaves in the middle of a handshake is gone.
      socket.allowHalfOpen = false;
      if (certificates.findChallenge === undefined) server.emit('connection', socket);
      else {
        readHello(socket, (hello) => {
          const isChallenge = hello.includes(challengeProtocol);
          (isChallenge ? challengeServer : server).emit('connection', socket);
        });
      }
    },
    shareTickets(secret) {
      ticketSecret = secret;
      takeTicketKey();
    },
    [Symbol.dispose]: () => checking[Symbol.dispose](),
  };
}

/** Reads the first record of a connection, which says what a client asks for, and leaves it there to be read again. */
function readHello(socket: Socket, then: (hello: Buffer) => void): void {
  let hello = Buffer.alloc(0);
  const timer = setTimeout(() => socket.destroy(), handshakeTimeout);
  const ignore = (): void => {};
  socket.on('error', ignore);
  socket.once('close', () => clearTimeout(timer));
  socket.on('data', function take(chunk: Buffer) {
    hello = Buffer.concat([hello, chunk]);
    const length = hello.length < recordHeaderBytes ? largestRecordBytes : hello.readUInt16BE(3);
    const isWhole = hello.length >= recordHeaderBytes + Math.min(length, largestRecordBytes);
    // Anything but a handshake (RFC 8446 §5.1) the other end refuses.
    if (!isWhole && hello[0] === 22) return;
    clearTimeout(timer);
    socket.off('data', take).off('error', ignore).pause();
    socket.unshift(hello);
    then(hello);
  });
}
