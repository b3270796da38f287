import {
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server';
import { decodeAttestationObject, decodeClientDataJSON } from '@simplewebauthn/server/helpers';
import { z } from 'zod';
import type { Passkey } from '../users/passkey-store.ts';

/** Whom browsers take the hub for: a passkey works for this host alone, on a page of this origin. */
export interface RelyingParty {
  /** Host name of the public URL. */
  readonly id: string;
  readonly name: string;
  readonly origin: string;
}

/** What the browser answered is wrong; the message is for the log. */
export class WebAuthnError extends Error {
  override readonly name = 'WebAuthnError';
}

/** ES256, EdDSA and RS256 (RFC 8812, RFC 9053): what authenticators have. */
const algorithms = [-7, -8, -257];

const base64url = z.string().regex(/^[A-Za-z0-9_-]*$/);
/** Web Authentication Level 3 §7.1, step 26: at most 1023 bytes. */
const credentialId = base64url.min(1).max(1364);
const transports = z.array(z.string().regex(/^[a-z-]{1,20}$/)).max(8);

/** `RegistrationResponseJSON` (Web Authentication Level 3 §5.1). */
const creationSchema = z.object({
  id: credentialId,
  rawId: credentialId,
  type: z.literal('public-key'),
  response: z.object({
    clientDataJSON: base64url,
    attestationObject: base64url,
    transports: transports.catch([]).default([]),
  }),
});

/** `AuthenticationResponseJSON` (Web Authentication Level 3 §5.1). */
const assertionSchema = z.object({
  id: credentialId,
  rawId: credentialId,
  type: z.literal('public-key'),
  response: z.object({
    clientDataJSON: base64url,
    authenticatorData: base64url,
    signature: base64url,
    userHandle: base64url.nullish(),
  }),
});

export type Assertion = z.output<typeof assertionSchema>;

/** Options for `navigator.credentials.create`, as JSON. */
export function creationOptions(options: {
  readonly party: RelyingParty;
  readonly challenge: string;
  readonly user: { readonly id: string; readonly name: string };
  readonly known: readonly Passkey[];
  readonly timeoutMs: number;
}): Promise<object> {
  const { party, challenge, user, known, timeoutMs } = options;
  return generateRegistrationOptions({
    rpID: party.id,
    rpName: party.name,
    challenge: Buffer.from(challenge, 'base64url'),
    userID: Buffer.from(user.id),
    userName: user.name,
    userDisplayName: user.name,
    timeout: timeoutMs,
    excludeCredentials: known.map(({ id, transports }) => ({ id, transports: [...transports] })),
    authenticatorSelection: { residentKey: 'preferred', userVerification: 'preferred' },
    supportedAlgorithmIDs: algorithms,
  });
}

/** Checks what `navigator.credentials.create` gave. Throws a `WebAuthnError`. */
export async function verifyCreation(
  text: string,
  { party, challenge }: { readonly party: RelyingParty; readonly challenge: string },
): Promise<Pick<Passkey, 'id' | 'publicKey' | 'signCount' | 'transports' | 'verifiesUser'>> {
  const answer = parse(creationSchema, text);
  return checked(async () => {
    const { response } = answer;
    requireOwnFrame(response.clientDataJSON);
    // A chain of certificates was not asked for, and would be fetched and read for an attacker.
    const attestation = decodeAttestationObject(
      Buffer.from(response.attestationObject, 'base64url'),
    );
    if (attestation.get('attStmt').size > 0 && attestation.get('fmt') !== 'packed') {
      throw new WebAuthnError('an attestation was not asked for');
    }
    if (attestation.get('attStmt').get('x5c') !== undefined) {
      throw new WebAuthnError('an attestation was not asked for');
    }
    const { verified, registrationInfo } = await verifyRegistrationResponse({
      response: { ...answer, clientExtensionResults: {} },
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: false,
      supportedAlgorithmIDs: algorithms,
    });
    if (!verified) throw new WebAuthnError('the attestation does not hold');
    const { credential, userVerified } = registrationInfo;
    return {
      id: credential.id,
      publicKey: Buffer.from(credential.publicKey).toString('base64url'),
      signCount: credential.counter,
      transports: response.transports,
      verifiesUser: userVerified,
    };
  });
}

/** Reads what `navigator.credentials.get` gave. Throws a `WebAuthnError`. */
export function parseAssertion(text: string): Assertion {
  return parse(assertionSchema, text);
}

/** Checks it, and gives the new counter. Throws a `WebAuthnError`. */
export function verifyAssertion(
  assertion: Assertion,
  options: {
    readonly party: RelyingParty;
    readonly challenge: string;
    readonly passkey: Passkey;
    readonly requiresVerification: boolean;
    /** Whether the passkey has to name its user: where no one was named before (§7.2, step 6). */
    readonly requiresHandle: boolean;
  },
): Promise<{ readonly signCount: number }> {
  const { party, challenge, passkey, requiresVerification, requiresHandle } = options;
  return checked(async () => {
    const { userHandle, ...response } = assertion.response;
    requireOwnFrame(response.clientDataJSON);
    if (requiresHandle && !userHandle) throw new WebAuthnError('the passkey names no user');
    if (userHandle && Buffer.from(userHandle, 'base64url').toString() !== passkey.userId) {
      throw new WebAuthnError('the passkey is of another user');
    }
    const { verified, authenticationInfo } = await verifyAuthenticationResponse({
      response: { ...assertion, response, clientExtensionResults: {} },
      expectedChallenge: challenge,
      expectedOrigin: party.origin,
      expectedRPID: party.id,
      requireUserVerification: requiresVerification,
      credential: {
        id: passkey.id,
        publicKey: Buffer.from(passkey.publicKey, 'base64url'),
        counter: passkey.signCount,
      },
    });
    if (!verified) throw new WebAuthnError('the signature is wrong');
    return { signCount: authenticationInfo.newCounter };
  });
}

function parse<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new WebAuthnError('the answer is not JSON');
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new WebAuthnError('the answer is not that of a passkey');
  return parsed.data;
}

/** The library throws plain errors for whatever is wrong. */
async function checked<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof WebAuthnError) throw error;
    throw new WebAuthnError(error instanceof Error ? error.message : String(error));
  }
}

/** A page elsewhere that shows the hub in a frame must not use its passkeys. */
function requireOwnFrame(clientDataJson: string): void {
  if (decodeClientDataJSON(clientDataJson).crossOrigin === true) {
    throw new WebAuthnError('the page was shown in a frame of another site');
  }
}
