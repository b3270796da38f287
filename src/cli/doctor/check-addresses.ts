import { createServer } from 'node:http';
import { connect } from 'node:tls';
import type { Config } from '../../config/config.ts';
import { listen } from '../../http/server/listener.ts';
import { type Finding, failed, ok, skipped, warning } from '../../plugin-host/finding.ts';

const answerTimeoutMs = 5_000;
const dayMs = 86_400_000;
const certificateWarningMs = 14 * dayMs;

/** Whether the hub's addresses are free, or are the running hub's. */
export async function checkListeners(
  { Hub }: Config,
  hubPid: number | undefined,
): Promise<readonly Finding[]> {
  const addresses = { 'Hub.bind_url': Hub.bind_url, 'Hub.hub_bind_url': Hub.hub_bind_url };
  return await Promise.all(
    Object.entries(addresses).map(async ([key, url]) => {
      const check = `address of ${key}`;
      if (hubPid !== undefined) return ok(check, `${url}, of the running hub (process ${hubPid})`);
      const server = createServer();
      try {
        await listen(server, url, { key });
        return ok(check, `${url} is free`);
      } catch (error) {
        return failed(check, (error as Error).message, `free the address, or change ${key}`);
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
  const certificate = publicUrl.protocol === 'https:' ? [await checkCertificate(publicUrl)] : [];
  return [...certificate, await checkHealth(publicUrl, hubPid)];
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
    await answer.body?.cancel();
    if (answer.status === 200) return ok(check, `${address} answers`);
    return failed(
      check,
      `${address} is answered with ${answer.status}`,
      'let the proxy before the hub forward to Hub.bind_url, or correct Hub.public_url',
    );
  } catch (error) {
    return failed(
      check,
      `${address} gives no answer: ${reasonOf(error)}`,
      'check name, port and proxy; from inside its own network a machine may not reach its public name',
    );
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
  socket.once('error', (error) => {
    const fix = 'renew or correct it, with all certificates up to the authority';
    resolve(failed(check, `that of ${host} is not taken: ${error.message}`, fix));
  });
  return await promise;
}

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
