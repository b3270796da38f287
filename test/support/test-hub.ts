import { mkdtemp, readdir, readlink, rm, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { type Logger, pino } from 'pino';
import type { ReloadReport } from '../../src/cluster/instances/reload-operation.ts';
import { createHub, type Hub } from '../../src/composition/hub.ts';
import { loadCheckedConfig } from '../../src/entrances/cli/checked-config.ts';
import type { Argon2Cost } from '../../src/identity/authentication/password-hash.ts';
import { emptySqliteFile } from './empty-sqlite-file.ts';
import { type BrowserAnswer, FakeBrowser } from './fake-browser.ts';
import { freePort } from './free-port.ts';
import { memoryFolder } from './memory-folder.ts';
import { programFile } from './program-file.ts';

type Section = Readonly<Record<string, unknown>>;

/** The cookie key of test hubs. */
export const testCookieSecret = 'c0ffee42d15ea5e5a1ad0ddba11f00d5c0ffee42d15ea5e5a1ad0ddba11f00d5';

/** The configuration file of a test hub; what is left out is set to run alone on free ports. */
export interface TestHubConfig {
  readonly Hub?: Section;
  readonly Authenticator?: Section;
  readonly Spawner?: Section;
  readonly Proxy?: Section;
  readonly [section: string]: unknown;
}

/** A whole hub on free ports, from its configuration file on: nothing in it is a stand-in. */
export interface TestHub extends AsyncDisposable {
  readonly hub: Hub;
  /** Public base URL, ends in a slash. */
  readonly url: string;
  /** URL of the REST API at the internal address, without a slash at the end. */
  readonly apiUrl: string;
  /** Folder of the configuration file and of everything relative to it. */
  readonly directory: string;
  readonly logLines: Record<string, unknown>[];
  /** A browser that is logged in by the login form. */
  logIn(userName: string, password?: string): Promise<FakeBrowser>;
  /** A request to the API with a token. */
  api(path: string, token: string | undefined, init?: RequestInit): Promise<Response>;
  /** Writes the file again and makes the hub take it over. */
  reload(config: TestHubConfig): Promise<ReloadReport>;
  /** Stops this hub and starts another one on the same files and ports. */
  restart(): Promise<TestHub>;
}

export interface TestHubOptions {
  /** Keeps the files of an earlier hub; they are not removed at the end. */
  readonly directory?: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** As if the hub ran on a machine of its own with this id. */
  readonly machineId?: string;
  /** Of Argon2id; next to nothing by default, as most tests only want people to have passwords. */
  readonly passwordCost?: Argon2Cost;
}

const lowPasswordCost: Argon2Cost = { memoryKib: 64, passes: 1, parallelism: 1 };

/**
 * Starts a hub with the dummy authenticator, which admits everybody with the password `test`, unless
 * the configuration says otherwise. An admin service token is `admin-service-token`.
 */
export async function createTestHub(
  config: TestHubConfig = {},
  options: TestHubOptions = {},
): Promise<TestHub> {
  const directory = options.directory ?? (await mkdtemp(join(memoryFolder(), 'hub-test-')));
  const file = join(directory, 'hub.config.json');
  const environment = options.environment ?? process.env;
  const ports = { public: await freePort(), internal: await freePort() };
  const complete = (given: TestHubConfig) => ({
    DummyAuthenticator: { password: 'test' },
    ...given,
    Hub: {
      bind_url: `http://127.0.0.1:${ports.public}/`,
      hub_bind_url: `http://127.0.0.1:${ports.internal}`,
      cookie_secret: testCookieSecret,
      authenticator_class: 'dummy',
      // The same after a restart, and another one for each hub on a shared database.
      instance_name: basename(directory),
      ...given.Hub,
      services: [
        { name: 'admin-service', admin: true, api_token: 'admin-service-token' },
        ...((given.Hub?.['services'] as unknown[] | undefined) ?? []),
      ],
    },
    Authenticator: { allow_all: true, ...given.Authenticator },
  });
  await writeFile(file, JSON.stringify(complete(config)));
  if (options.directory === undefined && config.Hub?.['database_url'] === undefined) {
    await writeFile(join(directory, 'hub.sqlite'), await emptySqliteFile(), { mode: 0o600 });
  }
  const logLines: Record<string, unknown>[] = [];
  const { machineId, passwordCost } = options;
  let hub = await startHub(file, {
    environment,
    logLines,
    ...(machineId === undefined ? {} : { machineId }),
    ...(passwordCost === undefined ? {} : { passwordCost }),
  });
  let isDisposed = false;

  const url = hub.publicUrl.href;

  const testHub: TestHub = {
    get hub() {
      return hub;
    },
    url,
    apiUrl: new URL(
      `${hub.publicUrl.pathname}hub/api`,
      `http://127.0.0.1:${(hub.internalServer.address() as AddressInfo).port}`,
    ).href,
    directory,
    logLines,

    async logIn(userName, password = 'test') {
      const browser = new FakeBrowser();
      const answer = await submitLogin(browser, url, userName, password);
      if (answer.status !== 302) {
        throw new Error(
          `the login of ${userName} was answered with ${answer.status}: ${answer.body}`,
        );
      }
      return browser;
    },

    api: (path, token, init = {}) =>
      fetch(testHub.apiUrl + path, {
        ...init,
        headers: {
          ...(token === undefined ? {} : { authorization: `token ${token}` }),
          ...(typeof init.body === 'string' ? { 'content-type': 'application/json' } : {}),
          ...(init.headers as Record<string, string> | undefined),
        },
      }),

    async reload(changed) {
      await writeFile(file, JSON.stringify(complete(changed)));
      return hub.reload(await loadCheckedConfig({ file, env: environment }));
    },

    async restart() {
      await stop();
      return createTestHub(
        { ...config, Hub: { ...addresses(ports), ...config.Hub } },
        { ...options, directory },
      );
    },

    async [Symbol.asyncDispose]() {
      await stop();
      if (options.directory !== undefined) return;
      await endProcessesIn(directory);
      // What was ended just now may have made a file yet.
      await rm(directory, { recursive: true, force: true, maxRetries: 3 });
    },
  };

  async function stop(): Promise<void> {
    if (isDisposed) return;
    isDisposed = true;
    await hub[Symbol.asyncDispose]();
    // Test files stay loaded, and what they name at their top with them; a hub is large.
    hub = undefined as never;
  }

  return testHub;
}

/** Ends what a test left running in its folder: servers outlive their hub, and no test needs that. */
export async function endProcessesIn(directory: string): Promise<void> {
  for (const name of await readdir('/proc').catch(() => [] as string[])) {
    if (!/^\d+$/.test(name)) continue;
    const folder = await readlink(`/proc/${name}/cwd`).catch(() => '');
    if (!`${folder}/`.startsWith(`${directory}/`)) continue;
    try {
      process.kill(Number(name), 'SIGKILL');
    } catch {
      // It ended by itself in the meantime.
    }
  }
}

/** Opens the login page, fills in its form and sends it; the answer is not followed. */
export async function submitLogin(
  browser: FakeBrowser,
  hubUrl: string,
  userName: string,
  password: string,
  next?: string,
): Promise<BrowserAnswer> {
  const url = `${hubUrl}hub/login${next === undefined ? '' : `?next=${encodeURIComponent(next)}`}`;
  const page = await browser.request(url);
  return submitForm(browser, page, { username: userName, password });
}

/** Sends the first POST form of a page with its hidden fields and the values given. */
export async function submitForm(
  browser: FakeBrowser,
  page: BrowserAnswer,
  values: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<BrowserAnswer> {
  const form = /<form[^>]*method="post"[^>]*action="([^"]*)"[\s\S]*?<\/form>/.exec(page.body);
  if (form === null) throw new Error(`no form on the page: ${page.body.slice(0, 2000)}`);
  const [markup, action = ''] = form;
  const fields = new URLSearchParams();
  for (const [input] of markup.matchAll(/<input[^>]*type="hidden"[^>]*>/g)) {
    const name = /name="([^"]*)"/.exec(input)?.[1];
    if (name !== undefined)
      fields.append(name, unescapeHtml(/value="([^"]*)"/.exec(input)?.[1] ?? ''));
  }
  for (const [name, value] of Object.entries(values)) fields.set(name, value);
  return browser.request(new URL(unescapeHtml(action), page.url).href, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      referer: page.url,
      ...headers,
    },
    body: fields.toString(),
  });
}

/** Resolves when the condition holds; fails after a time that only a hang can reach. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  const begun = Date.now();
  while (!(await condition())) {
    const waitedMs = Date.now() - begun;
    if (waitedMs > 240_000) throw new Error(`it never happened: ${what}`);
    // A condition that asks a hub keeps both busy: the longer it takes, the less often it is asked.
    const pauseMs = Math.min(200, Math.max(20, waitedMs / 10));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Starts a hub in this process from its configuration file on, with every check of `hub start`. */
export async function startHub(
  file: string,
  {
    environment,
    logLines,
    machineId,
    passwordCost = lowPasswordCost,
  }: Pick<TestHubOptions, 'machineId' | 'passwordCost'> & {
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly logLines: Record<string, unknown>[];
  },
): Promise<Hub> {
  const checked = await loadCheckedConfig({ file, env: environment });
  return createHub({
    ...checked,
    version: '0.0.0-test',
    nodeVersion: process.version,
    environment,
    log: createLog(logLines),
    passwordCost,
    program: [process.execPath, programFile('main')],
    ...(machineId === undefined ? {} : { machineId }),
    droppedLogLines: () => 0,
  });
}

function createLog(lines: Record<string, unknown>[]): Logger {
  return pino({ level: 'debug' }, { write: (line) => lines.push(JSON.parse(line)) });
}

function addresses(ports: { readonly public: number; readonly internal: number }): Section {
  return {
    bind_url: `http://127.0.0.1:${ports.public}/`,
    hub_bind_url: `http://127.0.0.1:${ports.internal}`,
  };
}

export function unescapeHtml(text: string): string {
  return text.replaceAll(/&(?:#(\d+)|#x([0-9a-f]+)|amp|lt|gt|quot);/gi, (entity, decimal, hex) => {
    if (decimal !== undefined) return String.fromCodePoint(Number(decimal));
    if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
    return (
      { '&amp;': '&', '&lt;': '<', '&gt;': '>', '&quot;': '"' }[entity.toLowerCase()] ?? entity
    );
  });
}
