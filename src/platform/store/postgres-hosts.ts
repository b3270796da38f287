import type pg from 'pg';
import { StartupError } from '../errors.ts';

const parts = /^(?<start>postgres(?:ql)?:\/\/(?:[^/?#]*@)?)(?<hosts>[^/?#]*)(?<rest>.*)$/s;

/**
 * One URL for each of the hosts in the URL of a database, such as `postgresql://hub@a:5432,b:5433/hub`. Of several, a
 * hub uses the first that takes writes, as libpq does with `target_session_attrs=read-write`. Throws StartupError for
 * another value of that (PostgreSQL, libpq: Connection Strings).
 */
export function hostUrls(url: string, setting: string): readonly [string, ...string[]] {
  const { start = '', hosts = '', rest = '' } = parts.exec(url)?.groups ?? {};
  const [first, ...others] = hosts.split(',').map((host) => `${start}${host}${rest}`);
  if (first === undefined || others.length === 0) return [url];
  const wanted = URL.parse(first)?.searchParams.get('target_session_attrs') ?? 'read-write';
  if (wanted !== 'read-write' && wanted !== 'primary') {
    throw new StartupError(
      `${setting} has target_session_attrs=${wanted}: a hub writes, so make that read-write`,
    );
  }
  return [first, ...others];
}

/** A class of clients that connect to the first of several hosts that takes writes; `makeProbe` makes one for a host. */
export function clientOfHosts(
  Client: typeof pg.Client,
  urls: readonly string[],
  makeProbe: (url: string) => pg.Client,
): typeof pg.Client {
  /** The host that took writes last. */
  let best = 0;

  async function findWritable(): Promise<Pick<pg.Client, 'host' | 'port'>> {
    let problem: unknown;
    for (const index of urls.map((_, step) => (best + step) % urls.length)) {
      const probe = makeProbe(urls[index] ?? '');
      probe.on('error', () => {
        // Its query says the same.
      });
      try {
        await probe.connect();
        const { rows } = await probe.query('show transaction_read_only');
        if (rows[0]?.transaction_read_only === 'off') {
          best = index;
          return probe;
        }
        problem ??= Object.assign(new Error('no host takes writes'), { code: '25006' });
      } catch (error) {
        problem ??= error;
      } finally {
        probe.end().catch(() => {
          // It has told what was asked for, or is gone already.
        });
      }
    }
    throw problem;
  }

  return class ClientOfHosts extends Client {
    #hasEnded = false;

    // biome-ignore lint/suspicious/noExplicitAny: the overloads are those of the base class
    override connect(callback?: any): any {
      const connected = findWritable().then(async ({ host, port }) => {
        if (this.#hasEnded) throw new Error('Connection terminated');
        Object.assign(this, { host, port });
        await super.connect();
      });
      if (callback === undefined) return connected;
      void connected.then(() => callback(), callback);
    }

    // biome-ignore lint/suspicious/noExplicitAny: the overloads are those of the base class
    override end(...args: any): any {
      this.#hasEnded = true;
      return super.end.apply(this, args);
    }
  };
}
