import { createGuardrails, generateSecret, generateURI, verifySync } from 'otplib';

/** Seconds that a code is shown (RFC 6238 §4.1). */
const stepSeconds = 30;

/** Secrets that other programs made, such as JupyterHub's NativeAuthenticator, have 80 bits. */
const guardrails = createGuardrails({ MIN_SECRET_BYTES: 10 });

/** Makes a secret of 160 bits in Base32 (RFC 4226 §4, R6). */
export function newTotpSecret(): string {
  return generateSecret({ length: 20 });
}

/** The address that an authenticator app reads from a QR code. */
export function totpUri(key: {
  readonly issuer: string;
  readonly userName: string;
  readonly secret: string;
}): string {
  // A colon would end the issuer or the account name in the middle.
  const [issuer, label] = [key.issuer, key.userName].map((text) => text.replaceAll(':', ' '));
  return generateURI({ issuer: issuer ?? '', label: label ?? '', secret: key.secret });
}

/**
 * Finds the time step to which a code belongs: the present one or a neighbour, since clocks differ
 * (RFC 6238 §5.2). Undefined for any other code.
 */
export function timeStepOf(secret: string, code: string, now: Date): number | undefined {
  const token = code.replaceAll(/[\s-]/g, '');
  if (!/^\d{6}$/.test(token)) return undefined;
  const epoch = Math.floor(now.getTime() / 1000);
  const result = verifySync({ secret, token, epoch, epochTolerance: stepSeconds, guardrails });
  return result.valid ? Math.floor(epoch / stepSeconds) + result.delta : undefined;
}
