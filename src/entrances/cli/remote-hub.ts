import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { z } from 'zod';
import { type CommandOperationId, operationOf } from '../../operations/operations.ts';
import type { PerformCommand } from '../../operations/perform-command.ts';
import { HubError, type HubErrorCode } from '../../platform/errors.ts';
import { hubCommand } from '../../platform/files/program-folder.ts';
import type { CliIo } from './cli-io.ts';

const tokens = z.record(z.string(), z.string());

/** The tokens with which a person is logged in to remote hubs, by the URLs of these; nobody else may read the file. */
export function loginFile({ env }: Pick<CliIo, 'env'>) {
  const home = env['XDG_CONFIG_HOME'] ?? join(env['HOME'] ?? homedir(), '.config');
  const file = join(home, 'hub', 'logins.json');

  async function read(): Promise<Record<string, string>> {
    try {
      return tokens.parse(JSON.parse(await readFile(file, 'utf8')));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
      throw new HubError('unavailable', `The file of logins is not readable: ${file}`, {
        cause: error,
      });
    }
  }

  return {
    find: async (hubUrl: string) => (await read())[hubUrl],
    /** Undefined to forget it. */
    async keep(hubUrl: string, token: string | undefined): Promise<void> {
      const { [hubUrl]: _, ...others } = await read();
      const kept = token === undefined ? others : { ...others, [hubUrl]: token };
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      const temporary = `${file}.${process.pid}`;
      await writeFile(temporary, `${JSON.stringify(kept, undefined, 2)}\n`, { mode: 0o600 });
      await rename(temporary, file);
    },
  };
}

/** The base URL of a hub as it is typed, with a slash at its end. Throws `bad_request`. */
export function readHubUrl(typed: string): string {
  const url = URL.parse(typed);
  const isHttp = url?.protocol === 'https:' || url?.protocol === 'http:';
  if (url === null || !isHttp || url.username + url.password + url.search + url.hash !== '')
    throw new HubError('bad_request', `This is not the URL of a hub: ${typed}`);
  return url.href.endsWith('/') ? url.href : `${url.href}/`;
}

/** Asks a hub below `/hub/api`. Throws `unavailable` where none answers; redirects would lead the token to others. */
export async function askHub(hubUrl: string, path: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(new URL(`hub/api${path}`, hubUrl), { ...init, redirect: 'error' });
  } catch (error) {
    const { cause = error } = error as Error;
    throw new HubError('unavailable', `No hub answers at ${hubUrl}: ${(cause as Error).message}`);
  }
}

/** Performs operations at a remote hub, over its API and with what the user of the login may do there. */
export function performRemotely<Ids extends CommandOperationId>(
  typed: string,
  io: Pick<CliIo, 'env'>,
): PerformCommand<Ids> {
  const hubUrl = readHubUrl(typed);
  const perform: PerformCommand = async (id, { params = {}, query = {}, body } = {}) => {
    const token = await loginFile(io).find(hubUrl);
    if (token === undefined) throw loggedOut(hubUrl);
    const { method, path, audience } = operationOf(id);
    if (audience === 'command')
      throw new HubError('bad_request', 'This is done beside the hub only, without --url.');
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) =>
      encodeURIComponent(params[name] ?? ''),
    );
    const headers = { authorization: `Bearer ${token}` };
    const answer = await askHub(hubUrl, `${filled}?${new URLSearchParams(query)}`, {
      method,
      headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (answer.ok) return text === '' ? undefined : JSON.parse(text);
    if (answer.status === 403 && !(await askHub(hubUrl, '/user', { headers })).ok)
      throw loggedOut(hubUrl);
    throw asHubError(answer, text);
  };
  return perform as PerformCommand<Ids>;
}

const errorBody = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
});

function asHubError({ status }: Response, text: string): HubError {
  try {
    const { code, message, hint } = errorBody.parse(JSON.parse(text));
    return new HubError(code as HubErrorCode, message, hint === undefined ? {} : { hint });
  } catch {
    return new HubError('unavailable', `The hub answers with the status ${status}.`);
  }
}

function loggedOut(hubUrl: string): HubError {
  return new HubError('unauthenticated', `You are not logged in to ${hubUrl}, or no longer.`, {
    hint: `Log in with: ${hubCommand(`login ${hubUrl}`)}`,
  });
}
