import { createServer } from 'node:http';
import { connect } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../../platform/config/config.ts';
import { listen } from '../../../platform/http/server/listener.ts';
import { type Finding, failed, ok, skipped, warning } from '../../../plugin/host/finding.ts';
import { createFindForeignProcess } from '../../../spawning/processes/port-owner.ts';
import { certificateWarningMs } from '../config-checks.ts';

const answerTimeoutMs = 5_000;
const dayMs = 86_400_000;

/** Whether the hub's addresses are free, or are the running hub's. */
export async function checkListeners(
  { Hub }: Config,
  hubPid: number | undefined,
): Promise<readonly Finding[]> {
  const addresses = {
    'Hub.bind_url': Hub.bind_url,
    'Hub.hub_bind_url': Hub.hub_bind_url,
    ...(Hub.redirect_bind_url !== undefined && {
      'Hub.redirect_bind_url': Hub.redirect_bind_url,
    }),
  };
  return await Promise.all(
    Object.entries(addresses).map(async ([key, url]) => {
      const check = `address of ${key}`;
      if (hubPid !== undefined) return ok(check, `${url}, of the running hub (process ${hubPid})`);
      const server = createServer();
      try {
        await listen(server, url, { key });
        return ok(check, `${url} is free`);
      } catch (error) {
        const holder = await createFindForeignProcess()(url, undefined);
        const detail = (error as Error).message + (holder === undefined ? '' : `; ${holder}`);
        return failed(check, detail, `free the address, or change ${key}`);
      } finally {
        server.close();
      }
    }),
  );
}

/** Whether browsers reach the hub at `Hub.public_url`, and with a certificate that they take. */
export async function checkPublicUrl(
  { publicUrl }: Config,
  hubPid: number | undefined,
): Promise<readonly Finding[]> {
  if (publicUrl.protocol !== 'https:') return [await checkHealth(publicUrl, hubPid)];
  const certificate = await checkCertificate(publicUrl);
  if (certificate.state !== 'failed') return [certificate, await checkHealth(publicUrl, hubPid)];
  return [
    certificate,
    skipped('public_url', `no one asks ${publicUrl.href} without a certificate`),
  ];
}

async function checkHealth(publicUrl: URL, hubPid: number | undefined): Promise<Finding> {
  const check = 'public_url';
  const address = new URL('hub/health', publicUrl).href;
  if (hubPid === undefined) return skipped(check, `no hub runs that could answer at ${address}`);
  try {
    const answer = await fetch(address, {
      redirect: 'manual',
      signal: AbortSignal.timeout(answerTimeoutMs),
    });
    const fix = 'let the proxy before the hub forward to Hub.bind_url, or correct Hub.public_url';
    if (answer.status === 200 && (await isHealth(answer))) return ok(check, `${address} answers`);
    await answer.body?.cancel().catch(() => undefined);
    const location = answer.headers.get('location');
    const answered = location === null ? answer.status : `${answer.status}, to ${location}`;
    if (answer.status !== 200) return failed(check, `${address} is answered with ${answered}`, fix);
    return failed(check, `${address} is answered by something that is not the hub`, fix);
  } catch (error) {
    return failed(
      check,
      `${address} gives no answer: ${reasonOf(error)}`,
      'check name, port and proxy; from inside its own network a machine may not reach its public name',
    );
  }
}

/**
 * Whether the proxy before the hub passes on what its clients say in X-Forwarded-Host. The hub answers with 400 to two
 * hosts there, and sees them only then.
 */
export async function checkForwardedHost(
  { publicUrl, Hub }: Config,
  hubPid: number | undefined,
): Promise<readonly Finding[]> {
  const isDirect = new URL(Hub.bind_url).port === publicUrl.port;
  if (hubPid === undefined || Hub.trusted_proxies.length === 0 || isDirect) return [];
  const check = 'forwarded host';
  try {
    const answer = await fetch(new URL('hub/health', publicUrl), {
      headers: { 'X-Forwarded-Host': `${publicUrl.host}, elsewhere.invalid` },
      redirect: 'manual',
      signal: AbortSignal.timeout(answerTimeoutMs),
    });
    await answer.body?.cancel();
    if (answer.status === 200) return [ok(check, 'the proxy replaces X-Forwarded-Host')];
    if (answer.status !== 400) return [];
  } catch {
    // What does not answer is a finding of its own.
    return [];
  }
  const detail = 'the proxy passes X-Forwarded-Host on as its clients send it';
  const fix = 'let it replace X-Forwarded-Host, or remove it';
  return [
    Hub.trust_forwarded_host
      ? failed(check, `${detail}, and Hub.trust_forwarded_host believes it`, fix)
      : warning(check, `${detail}; the hub refuses such requests`, fix),
  ];
}

const maxHealthBytes = 1024;

/** Whether an answer is what a hub says of its health. What answers in its place may have no end. */
async function isHealth({ body }: Response): Promise<boolean> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxHealthBytes) return false;
  }
  try {
    const health: unknown = JSON.parse(Buffer.concat(chunks).toString());
    return isDeepStrictEqual(health, { status: 'ok' });
  } catch {
    return false;
  }
}

/** Looks at the certificate that browsers are shown. */
async function checkCertificate({ hostname, port }: URL): Promise<Finding> {
  const check = 'certificate';
  const host = hostname.replace(/^\[|\]$/g, '');
  const { promise, resolve } = Promise.withResolvers<Finding>();
  const socket = connect({ host, port: Number(port || 443), servername: host });
  socket.setTimeout(answerTimeoutMs, () => socket.destroy(new Error('no answer in time')));
  socket.once('secureConnect', () => {
    const leftMs = Date.parse(socket.getPeerCertificate().valid_to) - Date.now();
    const days = Math.floor(leftMs / dayMs);
    const left = days === 1 ? '1 day' : `${days} days`;
    resolve(
      leftMs < certificateWarningMs
        ? warning(check, `that of ${host} ends in ${left}`, 'renew it')
        : ok(check, `that of ${host} is good for ${left}`),
    );
    socket.destroy();
  });
  socket.once('error', (error: NodeJS.ErrnoException) => {
    const fix = certificateFix(error.code ?? '', host);
    const at = `${host}:${port || 443}`;
    resolve(
      fix === undefined
        ? failed(check, `${at} shows none: ${error.message.trim()}`, noCertificateFix)
        : failed(check, `that of ${at} is not taken: ${error.message.trim()}`, fix),
    );
  });
  return await promise;
}

const noCertificateFix =
  'start the hub, or the proxy there and have it end TLS, correct Hub.public_url, or mend name and network';

/** What to do about a certificate that is there; undefined where there was none to look at. */
function certificateFix(code: string, host: string): string | undefined {
  const fixes: Readonly<Record<string, string>> = {
    CERT_HAS_EXPIRED: "renew it, and have the proxy load it again; or set this machine's clock",
    CERT_NOT_YET_VALID: "set this machine's clock; it is not good before its time",
    ERR_TLS_CERT_ALTNAME_INVALID: `get one for ${host}, or correct Hub.public_url`,
    DEPTH_ZERO_SELF_SIGNED_CERT: ownAuthorityFix,
    SELF_SIGNED_CERT_IN_CHAIN: ownAuthorityFix,
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ownAuthorityFix,
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: ownAuthorityFix,
  };
  return fixes[code];
}

const ownAuthorityFix =
  'have the proxy send all certificates up to the authority; give one of your own to browsers, and here as NODE_EXTRA_CA_CERTS';

/** Whether what the configuration takes for running elsewhere answers. */
export async function checkExternalServices({ Hub }: Config): Promise<readonly Finding[]> {
  const external = Hub.services.flatMap(({ name, url, command }) =>
    command === undefined && url !== undefined && !url.includes('unix:') ? [{ name, url }] : [],
  );
  return await Promise.all(
    external.map(async ({ name, url }) => {
      const check = `service ${name}`;
      try {
        const signal = AbortSignal.timeout(answerTimeoutMs);
        const answer = await fetch(url, { redirect: 'manual', signal });
        await answer.body?.cancel();
        return ok(check, `${url} answers`);
      } catch (error) {
        const detail = `${url} gives no answer: ${reasonOf(error)}`;
        return failed(check, detail, 'start it, or correct its url');
      }
    }),
  );
}

function reasonOf(error: unknown): string {
  const { cause = error } = error as { cause?: unknown };
  return cause instanceof Error ? cause.message || cause.name : String(cause);
}
