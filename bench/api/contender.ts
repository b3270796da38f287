import type { PinnedProcess } from '../gateway/pinned-process.ts';

/** A hub whose API is measured; JupyterHub's has the same addresses. */
export interface ApiContender extends AsyncDisposable {
  readonly process: PinnedProcess;
  /** Where browsers reach it. */
  readonly url?: string;
  /** Ends in `/hub/api`. */
  readonly apiUrl: string;
}

/** Token of a service that may do everything. */
export const adminToken = 'bench-admin-service-token';

/** Names as a class list has them. */
export function userNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `user-${String(index).padStart(6, '0')}`);
}

/** Asks the API as the administrating service. Throws for anything but success. */
export async function ask(
  { apiUrl }: ApiContender,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const answer = await fetch(apiUrl + path, {
    method,
    headers: { authorization: `token ${adminToken}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path} was answered with ${answer.status}: ${text}`);
  return text === '' ? undefined : JSON.parse(text);
}

/** What creating users came to. */
export interface CreationResult {
  readonly usersPerSecond: number;
  readonly cpuMicros: number;
}

/** Creates users, some in each request, one request after the other. */
export async function createUsers(
  contender: ApiContender,
  names: readonly string[],
  namesPerRequest: number,
): Promise<CreationResult> {
  const { process } = contender;
  const cpuBefore = process.cpuSeconds();
  const startedAt = performance.now();
  for (let start = 0; start < names.length; start += namesPerRequest) {
    const usernames = names.slice(start, start + namesPerRequest);
    await ask(contender, 'POST', '/users', { usernames });
  }
  const seconds = (performance.now() - startedAt) / 1000;
  return {
    usersPerSecond: names.length / seconds,
    cpuMicros: ((process.cpuSeconds() - cpuBefore) / names.length) * 1e6,
  };
}

/** Makes an API token of a user, with everything the user may do. */
export async function issueToken(contender: ApiContender, name: string): Promise<string> {
  const { token } = (await ask(contender, 'POST', `/users/${name}/tokens`, {
    note: 'bench',
  })) as { token: string };
  return token;
}
