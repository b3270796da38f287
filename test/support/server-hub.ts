import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { identifyProcess } from '../../src/platform/process-table/process-table.ts';
import type { BrowserAnswer, FakeBrowser } from './fake-browser.ts';
import { fixtureFile, nodeCommand } from './node-command.ts';
import { programFile } from './program-file.ts';
import {
  createTestHub,
  submitForm,
  type TestHub,
  type TestHubConfig,
  type TestHubOptions,
  until,
} from './test-hub.ts';

/** The token of the administrating service of every test hub. */
export const adminToken = 'admin-service-token';

/** The command of an app of `fixtures/apps`. */
export function fixtureApp(name: string, ...rest: string[]): string[] {
  return nodeCommand(fixtureFile(name), ...rest);
}

/** The command that guards an app by `hub-singleuser`. */
export function guarded(...command: string[]): string[] {
  return [process.execPath, programFile('singleuser-main'), '--', ...command];
}

/** A server as the API shows it. */
export interface ServerModel {
  readonly name: string;
  readonly ready: boolean;
  readonly stopped: boolean;
  readonly unreachable_since: string | null;
  readonly pending: 'spawn' | 'stop' | null;
  readonly url: string;
  readonly started: string | null;
  readonly last_activity: string | null;
  readonly user_options: Record<string, unknown>;
  readonly stops_at: string | null;
  readonly stop_reason: 'idle_timeout' | 'max_age' | null;
  readonly paused_at: string | null;
  readonly failure: { readonly message: string; readonly output: readonly string[] } | null;
  readonly state?: Record<string, unknown>;
}

/** A whole hub whose users have servers. They end with it, unless it is told otherwise. */
export async function createServerHub(
  config: TestHubConfig = {},
  options: TestHubOptions = {},
): Promise<TestHub> {
  return createTestHub(
    {
      ...config,
      Hub: { cleanup_servers: true, ...config.Hub },
      Spawner: {
        cmd: fixtureApp('web-server'),
        access: 'gateway',
        // A slow machine is no reason to answer before it is done.
        slow_start_timeout: 300,
        slow_stop_timeout: 300,
        ...config.Spawner,
      },
    },
    options,
  );
}

/** Makes users by the API. */
export async function createUsers(hub: TestHub, ...names: string[]): Promise<void> {
  const answer = await hub.api('/users', adminToken, {
    method: 'POST',
    body: JSON.stringify({ usernames: names }),
  });
  if (answer.status !== 201) throw new Error(`users: ${answer.status} ${await answer.text()}`);
}

/** Calls the API with a JSON body. `body` of the answer is undefined where it has none. */
export async function callApi(
  hub: TestHub,
  token: string,
  method: string,
  path: string,
  body?: unknown,
) {
  const answer = await hub.api(path, token, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
}

/** Path of a server in the API. */
export function serverPath(userName: string, serverName = ''): string {
  const user = `/users/${encodeURIComponent(userName)}`;
  return serverName === '' ? `${user}/server` : `${user}/servers/${serverName}`;
}

/** Asks to start a server as the administrating service. */
export function startServer(hub: TestHub, path: string, body?: unknown): Promise<Response> {
  return hub.api(path, adminToken, {
    method: 'POST',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

export function stopServer(hub: TestHub, path: string, body?: unknown): Promise<Response> {
  return hub.api(path, adminToken, {
    method: 'DELETE',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

/** A server as the API shows it now. */
export async function getServer(hub: TestHub, path: string): Promise<ServerModel> {
  const answer = await hub.api(path, adminToken);
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as ServerModel;
}

/** Waits until a server is as it should be. */
export async function untilServer(
  hub: TestHub,
  path: string,
  isThere: (server: ServerModel) => boolean,
  what: string,
): Promise<ServerModel> {
  let server = await getServer(hub, path);
  await until(async () => {
    server = await getServer(hub, path);
    return isThere(server);
  }, what);
  return server;
}

/** Whether a process is there; one that has ended and was not reaped is not. */
export function isAlive(pid: number): boolean {
  return identifyProcess(pid) !== undefined;
}

/** A command that does nothing until there is a file `go` in its folder, then runs the other one. */
export function onceReportedTo(...command: string[]): string[] {
  const wait = 'echo waiting; while [ ! -e go ]; do sleep 0.05; done; exec "$@"';
  return ['sh', '-c', wait, 'sh', ...command];
}

/** Tells a waiting command in a folder of the hub to go on. */
export async function tellToGo(hub: TestHub, folder: string): Promise<void> {
  const home = join(hub.directory, 'homes', folder);
  await mkdir(home, { recursive: true });
  await writeFile(join(home, 'go'), '');
}

/** Whatever a stream of server-sent events tells, to its end. */
export async function readEvents(answer: Response): Promise<Record<string, unknown>[]> {
  const text = await answer.text();
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => JSON.parse(event.slice('data: '.length)) as Record<string, unknown>);
}

/** An API token of a user, made by the administrating service. */
export async function tokenOf(
  hub: TestHub,
  userName: string,
  scopes?: readonly string[],
): Promise<string> {
  const answer = await hub.api(`/users/${encodeURIComponent(userName)}/tokens`, adminToken, {
    method: 'POST',
    body: JSON.stringify({ note: 'test', ...(scopes === undefined ? {} : { scopes }) }),
  });
  const { token } = (await answer.json()) as { token?: string };
  if (token === undefined) throw new Error(`no token for ${userName}: ${answer.status}`);
  return token;
}

/** Fills in and sends the form of a page whose action is so. */
export function submitFormTo(
  browser: FakeBrowser,
  page: BrowserAnswer,
  action: RegExp,
  values: Readonly<Record<string, string>> = {},
): Promise<BrowserAnswer> {
  const forms = page.body.match(/<form[\s\S]*?<\/form>/g) ?? [];
  const form = forms.find((each) => action.test(/action="([^"]*)"/.exec(each)?.[1] ?? ''));
  if (form === undefined) throw new Error(`no form to ${action} on the page: ${page.body}`);
  return submitForm(browser, { ...page, body: form }, values);
}

/** Starts a server and waits until it is ready, however slow the machine is. */
export async function startUntilReady(hub: TestHub, path: string, body?: unknown): Promise<void> {
  const answer = await startServer(hub, path, body);
  if (answer.status !== 201 && answer.status !== 202) {
    throw new Error(`start of ${path}: ${answer.status} ${await answer.text()}`);
  }
  const isOver = ({ ready, failure }: ServerModel) => ready || failure !== null;
  const server = await untilServer(hub, path, isOver, `${path} is ready`);
  if (!server.ready) throw new Error(`${path} has failed: ${JSON.stringify(server.failure)}`);
}
