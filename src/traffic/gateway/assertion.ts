import { createPrivateKey, createPublicKey, hkdfSync } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { growingUpTo } from '../../platform/concurrency/answer-cache.ts';
import type { Secret } from '../../platform/config/secret.ts';
import type { DisclosedUserInfo } from './direct-hub-api.ts';

/** Who is there, as told to an upstream. */
export interface AssertedIdentity {
  readonly userName: string;
  readonly groups: readonly string[];
  readonly scopes: readonly string[];
  readonly info?: DisclosedUserInfo;
  /** OAuth client id of the service or server the assertion is for. */
  readonly audience: string;
}

/** Signs who is there, so that an upstream need not trust the network between. */
export interface AssertionSigner {
  /** The `X-Hub-Assertion` header: a JWT (RFC 7519) signed with EdDSA (RFC 8037). */
  assertion(identity: AssertedIdentity): Promise<string>;
  /** The public keys (RFC 7517): of the current and of every former cookie secret. */
  keySet(): Promise<{ readonly keys: readonly object[] }>;
}

/** At first use: a hub without guarded routes signs nothing. */
const loadJose = () => import('jose');

const lifetimeSeconds = 300;
/** An assertion is used again while at least this much of its life is left. */
const remainingMs = 240_000;

/** PKCS #8 header of an Ed25519 private key (RFC 8410 §7); the 32 bytes of the seed follow. */
const ed25519Header = Buffer.from('302e020100300506032b657004220420', 'hex');

/** The keys are derived from the cookie secrets, so all processes share them. */
export function createAssertionSigner(options: {
  readonly secrets: readonly Secret[];
  readonly issuer: string;
}): AssertionSigner {
  const privateKeys = options.secrets.map((secret) => {
    const seed = Buffer.from(hkdfSync('sha256', secret.reveal(), 'hub', 'assertion-key', 32));
    return createPrivateKey({
      key: Buffer.concat([ed25519Header, seed]),
      format: 'der',
      type: 'pkcs8',
    });
  });
  const [signingKey] = privateKeys;
  if (signingKey === undefined)
    throw new TypeError('an assertion signer needs at least one secret');
  let publicKeys: ReturnType<typeof exportPublicKeys> | undefined;
  const signed = new LRUCache<string, Promise<string>>({
    ...growingUpTo(10_000),
    ttl: remainingMs,
  });

  async function exportPublicKeys() {
    const { calculateJwkThumbprint, exportJWK } = await loadJose();
    return Promise.all(
      privateKeys.map(async (key) => {
        const jwk = await exportJWK(createPublicKey(key));
        return { ...jwk, kid: await calculateJwkThumbprint(jwk), use: 'sig', alg: 'EdDSA' };
      }),
    );
  }

  function getPublicKeys() {
    publicKeys ??= exportPublicKeys();
    return publicKeys;
  }

  async function sign(identity: AssertedIdentity): Promise<string> {
    const { SignJWT } = await loadJose();
    const kid = (await getPublicKeys())[0]?.kid ?? '';
    const { displayName, verifiedEmail } = identity.info ?? {};
    return new SignJWT({
      groups: identity.groups,
      scope: identity.scopes.join(' '),
      // OpenID Connect Core 1.0 §5.1.
      ...(displayName !== undefined && { name: displayName }),
      ...(verifiedEmail !== undefined && { email: verifiedEmail, email_verified: true }),
    })
      .setProtectedHeader({ alg: 'EdDSA', kid, typ: 'JWT' })
      .setIssuer(options.issuer)
      .setSubject(identity.userName)
      .setAudience(identity.audience)
      .setIssuedAt()
      .setExpirationTime(`${lifetimeSeconds}s`)
      .sign(signingKey as Parameters<InstanceType<typeof SignJWT>['sign']>[0]);
  }

  return {
    assertion(identity) {
      const key = JSON.stringify(identity);
      let assertion = signed.get(key);
      if (assertion === undefined) {
        assertion = sign(identity);
        signed.set(key, assertion);
      }
      return assertion;
    },
    keySet: async () => ({ keys: await getPublicKeys() }),
  };
}
