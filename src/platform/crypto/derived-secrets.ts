import { hkdfSync } from 'node:crypto';
import { Secret } from '../config/secret.ts';

/**
 * Secrets for one purpose (HKDF, RFC 5869), in the order of those they come from. Who holds them learns
 * nothing of the others, nor of what is derived from those for another purpose.
 */
export function deriveSecrets(secrets: readonly Secret[], purpose: string): readonly Secret[] {
  return secrets.map(
    (secret) =>
      new Secret(
        Buffer.from(hkdfSync('sha256', secret.reveal(), 'hub', purpose, 32)).toString('base64url'),
      ),
  );
}
