import type { Logger } from 'pino';
import { forEachAtOnce } from '../../../platform/concurrency/for-each-at-once.ts';
import { createPeriodic } from '../../../platform/concurrency/periodic.ts';
import { randomSecret } from '../../../platform/crypto/random.ts';
import type { LogoutOutcome } from '../../../platform/metrics/metrics.ts';
import type { HubDatabase } from '../../../platform/store/database.ts';
import type { Client } from '../clients/client.ts';
import type { ClientRegistry } from '../clients/client-registry.ts';
import { requestClient } from '../clients/client-request.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import type { SessionIdOf } from '../openid/id-token.ts';
import type { ClientLoginStore, EndedLogin } from './client-login-store.ts';

const pollMs = 5_000;
const attemptMs = 5_000;
/** Longer than an attempt: another instance goes on with what this one had taken when it ended. */
const firstDelayMs = 10_000;
const maxDelayMs = 600_000;
/** About a day. */
const maxAttempts = 150;
const tokenSeconds = 120;
/** To one client, of each instance. */
const atOnce = 8;

/** `events` of a logout token (OpenID Connect Back-Channel Logout 1.0 §2.4). */
const events = { 'http://schemas.openid.net/event/backchannel-logout': {} };

/**
 * Tells clients which logins have ended (OpenID Connect Back-Channel Logout 1.0), by what the transactions that end them
 * leave in the database. All instances do; each login is taken by one. A client that does not answer is tried again, ever
 * more seldom, and does not hold up the others. Disposing of it leaves what is not delivered for later.
 */
export function startLogoutDeliveries(deps: {
  readonly clientLogins: ClientLoginStore;
  readonly clients: Pick<ClientRegistry, 'find'>;
  readonly signingKeys: Pick<SigningKeys, 'sign'>;
  readonly sessionIdOf: SessionIdOf;
  readonly issuer: string;
  readonly database: Pick<HubDatabase, 'onChange' | 'now'>;
  readonly metrics: { countLogoutDelivery(outcome: LogoutOutcome): void };
  readonly log: Logger;
}): AsyncDisposable & { run(): Promise<void> } {
  const { clientLogins, database, log } = deps;
  const ending = new AbortController();
  const wanted = new Set<string>();
  const underWay = new Map<string, Promise<void>>();

  async function attempt(client: Client, url: string, login: EndedLogin): Promise<LogoutOutcome> {
    const { clientId, idTokenAlgorithm = 'RS256' } = client;
    try {
      const issuedAt = Math.floor(database.now() / 1000);
      const claims = {
        iss: deps.issuer,
        sub: login.userId,
        aud: clientId,
        iat: issuedAt,
        exp: issuedAt + tokenSeconds,
        jti: randomSecret(),
        sid: deps.sessionIdOf(login.sessionId, clientId),
        events,
      };
      const logout_token = await deps.signingKeys.sign(claims, idTokenAlgorithm, 'logout+jwt');
      const signal = AbortSignal.any([ending.signal, AbortSignal.timeout(attemptMs)]);
      const { status } = await requestClient(url, signal, {
        hosts: client.hosts,
        form: { logout_token },
      });
      if (status === 200 || status === 204) return 'delivered';
      log.warn({ client: clientId, status }, 'client refused a logout');
      // It says so of this login, and would again (§2.8).
      if (status === 400) return 'refused';
    } catch (error) {
      log.warn({ client: clientId, err: error }, 'logout of a client failed');
    }
    return login.attempts + 1 < maxAttempts ? 'failed' : 'given_up';
  }

  /** False where the client does not answer. */
  async function deliver(client: Client, url: string, login: EndedLogin): Promise<boolean> {
    const delayMs = Math.min(firstDelayMs * 2 ** login.attempts, maxDelayMs);
    if (!(await clientLogins.claim(login, database.now() + delayMs))) return true;
    const outcome = await attempt(client, url, login);
    if (ending.signal.aborted && outcome !== 'delivered') return false;
    deps.metrics.countLogoutDelivery(outcome);
    if (outcome === 'failed') return false;
    await clientLogins.settle(login);
    return true;
  }

  /** Until all is delivered, or the client does not answer. */
  async function tell(clientId: string): Promise<void> {
    const client = await deps.clients.find(clientId);
    const url = client?.logoutUrl;
    // Another instance may know it by a later configuration; one that has ended is forgotten where it ends.
    if (client === undefined) return;
    if (url === undefined) return clientLogins.forgetDue(clientId);
    let answers = true;
    while (wanted.delete(clientId) && answers) {
      const due = await clientLogins.due(clientId, 100);
      if (due.length > 0) wanted.add(clientId);
      await forEachAtOnce(atOnce, due, async (login) => {
        if (answers) answers = await deliver(client, url, login);
      });
    }
  }

  const polling = createPeriodic({
    intervalMs: pollMs,
    async work() {
      for (const clientId of await clientLogins.dueClients()) {
        wanted.add(clientId);
        if (underWay.has(clientId)) continue;
        const telling = tell(clientId)
          .catch((error: unknown) => log.warn({ err: error }, 'could not log clients out'))
          .finally(() => underWay.delete(clientId));
        underWay.set(clientId, telling);
      }
    },
    onError: (error) => log.warn({ err: error }, 'could not read the logouts of clients'),
  });
  // After the run under way, which may have looked before the change.
  const runAgain = () => polling.run().then(() => polling.run());
  const unlisten = database.onChange(
    () => void runAgain(),
    ['session_ended', 'rights_changed', 'all'],
  );

  return {
    async run() {
      await runAgain();
      await Promise.all(underWay.values());
    },
    async [Symbol.asyncDispose]() {
      unlisten();
      await polling[Symbol.asyncDispose]();
      ending.abort();
      await Promise.all(underWay.values());
    },
  };
}
