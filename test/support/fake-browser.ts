import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { request as secureRequest } from 'node:https';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { connect as connectSecurely } from 'node:tls';

/** What a request is made of, beside its URL and cookies. */
export interface BrowserRequest {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** An answer as a browser sees it. */
export interface BrowserAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly url: string;
}

interface StoredCookie {
  readonly name: string;
  readonly value: string;
  /** The host that set it, and alone gets it; undefined for all. */
  readonly host: string | undefined;
  readonly path: string;
  readonly attributes: string;
}

/** A browser as far as logins go: cookies of hosts and paths, and redirects one at a time or all at once. */
export class FakeBrowser {
  #cookies: StoredCookie[] = [];

  /** Sends one request; redirects are not followed. */
  async request(url: string, init: BrowserRequest = {}): Promise<BrowserAnswer> {
    const headers: Record<string, string> = {
      accept: 'text/html,*/*;q=0.8',
      'sec-fetch-mode': 'navigate',
      ...init.headers,
    };
    const cookies = this.cookieHeader(url);
    if (cookies !== '') headers['cookie'] = cookies;
    // Not fetch: that sets Sec-Fetch-Mode to its own value.
    const send = url.startsWith('https:') ? secureRequest : request;
    const outgoing = send(url, {
      method: init.method ?? 'GET',
      headers,
      ...connectingLocally(url),
    });
    outgoing.end(init.body);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    for (const line of response.headers['set-cookie'] ?? [])
      this.#store(line, new URL(url).hostname);
    const body = await text(response);
    return { status: response.statusCode ?? 0, headers: response.headers, body, url };
  }

  /** Sends a request and follows redirects, at most ten. */
  async open(url: string): Promise<BrowserAnswer> {
    let answer = await this.request(url);
    for (let hop = 0; hop < 10 && answer.headers.location !== undefined; hop += 1) {
      answer = await this.request(new URL(answer.headers.location, answer.url).href);
    }
    return answer;
  }

  /** Goes where an answer redirects to; the answer itself when it does not. */
  async follow(
    answer: BrowserAnswer,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<BrowserAnswer> {
    const { location } = answer.headers;
    if (location === undefined) return answer;
    return this.request(new URL(location, answer.url).href, { headers });
  }

  /** The Cookie header for a URL. */
  cookieHeader(url: string): string {
    const { pathname, hostname } = new URL(url);
    return this.#cookies
      .filter(({ host }) => host === undefined || host === hostname)
      .filter(({ path }) => pathname.startsWith(path))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ');
  }

  cookie(name: string): StoredCookie | undefined {
    return this.#cookies.find((cookie) => cookie.name === name);
  }

  cookieNames(): string[] {
    return this.#cookies.map(({ name }) => name);
  }

  setCookie(name: string, value: string, path = '/'): void {
    this.#store(`${name}=${value}; Path=${path}`, undefined);
  }

  #store(line: string, host: string | undefined): void {
    const [pair = '', ...attributes] = line.split(';').map((part) => part.trim());
    const name = pair.slice(0, pair.indexOf('='));
    const path = attributes.find((item) => /^path=/i.test(item))?.slice(5) ?? '/';
    const isOther = (old: StoredCookie) =>
      old.name !== name ||
      old.path !== path ||
      (host !== undefined && old.host !== undefined && old.host !== host);
    this.#cookies = this.#cookies.filter(isOther);
    const expires = attributes.find((item) => /^expires=/i.test(item))?.slice(8);
    if (expires !== undefined && Date.parse(expires) <= Date.now()) return;
    if (attributes.some((item) => /^max-age=0$/i.test(item))) return;
    const value = pair.slice(pair.indexOf('=') + 1);
    this.#cookies.push({ name, value, host, path, attributes: attributes.join('; ') });
  }
}

/** Browsers know that names below localhost are this machine (RFC 6761 §6.3); resolvers need not. */
function connectingLocally(url: string): { createConnection?: () => Socket } {
  const { hostname, port, protocol } = new URL(url);
  if (!hostname.endsWith('.localhost')) return {};
  const isSecure = protocol === 'https:';
  const address = { port: Number(port || (isSecure ? 443 : 80)), host: '127.0.0.1' };
  // The certificates of tests are signed by nobody.
  const secure = { ...address, servername: hostname, rejectUnauthorized: false };
  return { createConnection: () => (isSecure ? connectSecurely(secure) : connect(address)) };
}
