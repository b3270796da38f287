import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../../test/support/free-port.ts';
import { spawnHubProcess } from '../../test/support/hub-process.ts';
import { startPebble } from '../../test/support/pebble.ts';
import { askOverTls } from './ask.ts';

const host = 'hub.example.org';
const limitMs = 60_000;

/** Seconds from `hub start` in an empty folder to the first answer over https, with a certificate by ACME from pebble. */
export async function measureFirstAnswer(): Promise<number> {
  await using pebble = await startPebble();
  const ca = await pebble.root();
  const directory = await mkdtemp(join(tmpdir(), 'hub-bench-'));
  const Hub = {
    // The two settings; the rest is where authority and ports of this measurement are.
    public_url: `https://${host}/`,
    acme: { accept_terms: true, directory: pebble.directory, challenge: 'tls-alpn-01' },
    bind_url: `https://127.0.0.1:${pebble.ports.tls}/`,
    hub_bind_url: `http://127.0.0.1:${await freePort()}`,
  };
  await writeFile(join(directory, 'hub.config.json'), JSON.stringify({ Hub }));
  const since = performance.now();
  const hub = spawnHubProcess(['start'], {
    cwd: directory,
    env: { NODE_EXTRA_CA_CERTS: pebble.certificateFile },
  });
  try {
    const asked = { port: pebble.ports.tls, host, ca };
    while ((await askOverTls(asked).catch(() => undefined))?.status !== 200) {
      if (performance.now() - since > limitMs) throw new Error(`no answer: ${hub.stderr()}`);
      await pause(10);
    }
    return (performance.now() - since) / 1_000;
  } finally {
    await hub.end();
    await rm(directory, { recursive: true, force: true });
  }
}
