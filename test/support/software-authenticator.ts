import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** Options as the hub sends them (Web Authentication Level 3 §5.1). */
interface Question {
  readonly challenge: string;
  readonly rpId?: string;
  readonly rp?: { readonly id: string };
  readonly user?: { readonly id: string };
}

/** What a browser would not do by itself. */
export interface Tampering {
  readonly origin?: string;
  readonly rpId?: string;
  readonly challenge?: string;
  readonly type?: string;
  readonly crossOrigin?: boolean;
  /** Bits of the flags: 1 present, 4 verified (§6.1). */
  readonly flags?: number;
  readonly signCount?: number;
  readonly userHandle?: string;
  /** An attestation of another format than `none`. */
  readonly attestation?: { readonly format: string; readonly statement: Buffer };
}

/** One passkey of an authenticator in software: it signs whatever it is asked to. */
export interface SoftwarePasskey {
  readonly id: string;
  readonly userHandle: string;
  /** What `navigator.credentials.create` gives, as JSON text. */
  readonly creation: string;
  /** What `navigator.credentials.get` gives, as JSON text. */
  assert(question: Question, tampering?: Tampering): string;
}

const presentAndVerified = 0b101;
const withKey = 0b100_0000;

/** Makes a passkey as an authenticator and a browser at `origin` would. */
export function createSoftwarePasskey(
  question: Question,
  { origin, ...tampering }: Tampering & { readonly origin: string },
): SoftwarePasskey {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const rawId = randomBytes(32);
  const id = rawId.toString('base64url');
  const rpId = tampering.rpId ?? question.rp?.id ?? '';
  const userHandle = question.user?.id ?? '';
  let signCount = tampering.signCount ?? 0;
  const keyFlags = (tampering.flags ?? presentAndVerified) | withKey;
  const data = Buffer.concat([
    authenticatorData(rpId, keyFlags, signCount),
    Buffer.alloc(16),
    Buffer.of(0, rawId.length),
    rawId,
    coseKey(publicKey),
  ]);
  const { format, statement } = tampering.attestation ?? {
    format: 'none',
    statement: Buffer.of(0xa0),
  };
  const attestationObject = Buffer.concat([
    Buffer.of(0xa3),
    cborText('fmt'),
    cborText(format),
    cborText('attStmt'),
    statement,
    cborText('authData'),
    cborBytes(data),
  ]);
  const creation = JSON.stringify({
    id,
    rawId: id,
    type: 'public-key',
    clientExtensionResults: {},
    response: {
      clientDataJSON: clientData('webauthn.create', question, { origin, ...tampering }),
      attestationObject: attestationObject.toString('base64url'),
      transports: ['internal'],
    },
  });

  return {
    id,
    userHandle,
    creation,
    assert(asked, changed = {}) {
      if (signCount > 0) signCount += 1;
      const clientDataJSON = clientData('webauthn.get', asked, { origin, ...changed });
      const signedData = authenticatorData(
        changed.rpId ?? asked.rpId ?? '',
        changed.flags ?? presentAndVerified,
        changed.signCount ?? signCount,
      );
      const signature = signed(privateKey, signedData, clientDataJSON);
      return JSON.stringify({
        id,
        rawId: id,
        type: 'public-key',
        clientExtensionResults: {},
        response: {
          clientDataJSON,
          authenticatorData: signedData.toString('base64url'),
          signature: signature.toString('base64url'),
          userHandle: changed.userHandle ?? userHandle,
        },
      });
    },
  };
}

function clientData(type: string, { challenge }: Question, changed: Tampering): string {
  const data = {
    type: changed.type ?? type,
    challenge: changed.challenge ?? challenge,
    origin: changed.origin,
    crossOrigin: changed.crossOrigin ?? false,
  };
  return Buffer.from(JSON.stringify(data)).toString('base64url');
}

function authenticatorData(rpId: string, flags: number, signCount: number): Buffer {
  const counter = Buffer.alloc(4);
  counter.writeUInt32BE(signCount);
  return Buffer.concat([createHash('sha256').update(rpId).digest(), Buffer.of(flags), counter]);
}

function signed(key: KeyObject, data: Buffer, clientDataJSON: string): Buffer {
  const digest = createHash('sha256').update(Buffer.from(clientDataJSON, 'base64url')).digest();
  return sign('sha256', Buffer.concat([data, digest]), key);
}

/** An EC2 key of ES256 (RFC 9053 §7.1.1). */
function coseKey(key: KeyObject): Buffer {
  const { x = '', y = '' } = key.export({ format: 'jwk' });
  return Buffer.concat([
    Buffer.of(0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21),
    cborBytes(Buffer.from(x, 'base64url')),
    Buffer.of(0x22),
    cborBytes(Buffer.from(y, 'base64url')),
  ]);
}

function cborBytes(bytes: Buffer): Buffer {
  return Buffer.concat([cborHead(0x40, bytes.length), bytes]);
}

function cborText(text: string): Buffer {
  return Buffer.concat([cborHead(0x60, text.length), Buffer.from(text)]);
}

function cborHead(major: number, length: number): Buffer {
  if (length < 24) return Buffer.of(major | length);
  return length < 256
    ? Buffer.of(major | 24, length)
    : Buffer.of(major | 25, length >> 8, length & 0xff);
}
