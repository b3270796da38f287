import { hkdfSync } from 'node:crypto';
import type { Socket } from 'node:net';
import {
  createServer,
  type DetailedPeerCertificate,
  type TLSSocket,
  type TlsOptions,
} from 'node:tls';
import { createPeriodic } from '../../concurrency/periodic.ts';
import type { Secret } from '../../config/secret.ts';
import { noteCertificate } from '../request-address.ts';
import { createCertificateChoice } from './certificate-choice.ts';
import type { CertificateSource } from './certificate-source.ts';
import { endOfList, plainSerial, revokedSerials } from './read-certificate.ts';
import { contextOptions, createContext, sessionContextOf, tlsSettings } from './secure-context.ts';

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
  const { requiresClient = false } = certificates;
  const asksForOne = requiresClient || certificates.clientAuthorities !== undefined;
  const server = createServer({
    ...tlsSettings,
    handshakeTimeout,
    requestCert: asksForOne,
    // Visitors that show none, or one of others, are let in: it is for the routes to refuse them.
    rejectUnauthorized: requiresClient,
    sessionIdContext: sessionContextOf(certificates),
    ALPNProtocols: [...protocols],
    SNICallback: (name, answer) => answer(null, choice.contextFor(name)),
  });
  /** What visitors have shown, by connection. */
  const shown = new Map<TLSSocket, ShownChain>();
  server.on('secureConnection', (socket) => {
    // Without authorities of its own Node would take those of browsers.
    const leaf =
      asksForOne && !requiresClient && socket.authorized
        ? socket.getPeerX509Certificate()
        : undefined;
    // Of a session that goes on, OpenSSL says what was so when it began.
    const isOutdated = socket.isSessionReused() && countEnded() > 0;
    if (leaf !== undefined && leaf.validToDate > new Date() && !isOutdated) {
      noteCertificate(socket, leaf.raw.toString('base64'));
      shown.set(socket, chainOf(socket));
      socket.once('close', () => shown.delete(socket));
    }
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
    const period = Math.floor(Date.now() / ticketKeyMs);
    const made = hkdfSync('sha256', ticketSecret.reveal(), 'hub', `tls ${period}`, ticketKeyBytes);
    ticketKeys = Buffer.from(made);
    server.setTicketKeys(ticketKeys);
  }

  /** Those who name no server get it. */
  function takeFirst(): void {
    const { first } = choice;
    if (first === undefined) return;
    server.setSecureContext({ ...contextOptions(first, certificates), ticketKeys });
  }

  /** A new connection is judged by OpenSSL, so that one that is cut without need only has to be made again. */
  function cutRevoked(): void {
    const { revocationLists: lists = [] } = certificates;
    endsMs.clear();
    ended = countEnded();
    if (shown.size === 0 || lists.length === 0) return;
    const revoked = revokedSerials(lists);
    for (const [socket, { serials, isWhole }] of shown)
      if (!isWhole || serials.some((serial) => revoked.has(serial))) socket.destroy();
  }

  /** By list, which may be long: every session that goes on asks. */
  const endsMs = new Map<string, number>();

  function endMsOf(list: string): number {
    const endMs = endsMs.get(list) ?? endOfList(list) ?? Number.POSITIVE_INFINITY;
    endsMs.set(list, endMs);
    return endMs;
  }

  /** Lists that OpenSSL goes by no more, and by which it refuses new connections. */
  function countEnded(): number {
    const { revocationLists: lists = [] } = certificates;
    const nowMs = Date.now();
    return lists.filter((list) => endMsOf(list) <= nowMs).length;
  }

  let ended = countEnded();

  /** Where no other list came in time, what is open is judged as what is new. */
  function cutOutdated(): void {
    const former = ended;
    ended = countEnded();
    if (ended > former) for (const socket of shown.keys()) socket.destroy();
  }

  const checking = createPeriodic({
    intervalMs: ticketCheckMs,
    work() {
      takeTicketKey();
      cutOutdated();
    },
    onError: () => {},
  });
  certificates.onChange(takeFirst);
  certificates.onChange(cutRevoked);
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

/** Serial numbers of a certificate and those above it; not whole where a session that goes on has no more than the first. */
interface ShownChain {
  readonly serials: readonly string[];
  readonly isWhole: boolean;
}

function chainOf(socket: TLSSocket): ShownChain {
  const serials: string[] = [];
  let each: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
  for (;;) {
    if (each?.serialNumber === undefined) return { serials, isWhole: false };
    serials.push(plainSerial(each.serialNumber));
    const issuer: DetailedPeerCertificate | undefined = each.issuerCertificate;
    if (issuer === each || issuer?.fingerprint256 === each.fingerprint256)
      return { serials, isWhole: true };
    each = issuer;
  }
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
