import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { commandLineClient } from '../../identity/oauth/clients/command-line-client.ts';
import { HubError } from '../../platform/errors.ts';
import type { CliIo } from './cli-io.ts';
import { askHub, loginFile, readHubUrl } from './remote-hub.ts';

const { clientId: client_id } = commandLineClient;
const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';

const codes = z.object({
  device_code: z.string(),
  user_code: z.string(),
  verification_uri_complete: z.string(),
  interval: z.number(),
});
const answers = z.union([
  z.object({ access_token: z.string() }),
  z.object({ error: z.string(), error_description: z.string().optional() }),
]);

/** Lets the user say in a browser that this command line may act for them (RFC 8628), and keeps the token. */
export async function logInByDevice(typed: string, io: CliIo): Promise<string> {
  const hubUrl = readHubUrl(typed);
  const begun = await post(hubUrl, 'device_authorization', {});
  if (!begun.ok) throw refused(hubUrl, `status ${begun.status}`);
  const { device_code, user_code, verification_uri_complete, interval } = codes.parse(
    await begun.json(),
  );
  const { pause = sleep } = io;
  // Beside the output, which may be the token alone.
  io.stderr.write(
    `Open ${verification_uri_complete}\nand allow it if the code there is ${user_code}.\n`,
  );
  for (let seconds = interval; ; await pause(seconds * 1000)) {
    const answer = answers.parse(
      await (await post(hubUrl, 'token', { grant_type, device_code })).json(),
    );
    if ('access_token' in answer) {
      await loginFile(io).keep(hubUrl, answer.access_token);
      return answer.access_token;
    }
    if (answer.error === 'slow_down') seconds += 5;
    else if (answer.error !== 'authorization_pending')
      throw refused(hubUrl, answer.error_description ?? answer.error);
  }
}

/** The token of a login, which begins where there is none. */
export async function deviceToken(typed: string, io: CliIo): Promise<string> {
  const hubUrl = readHubUrl(typed);
  const token = await loginFile(io).find(hubUrl);
  const headers = { authorization: `Bearer ${token}` };
  const isGood = token !== undefined && (await askHub(hubUrl, '/user', { headers })).ok;
  return isGood ? token : logInByDevice(hubUrl, io);
}

/** Ends a login and forgets it; false where there was none. */
export async function logOutOf(typed: string, io: CliIo): Promise<boolean> {
  const hubUrl = readHubUrl(typed);
  const logins = loginFile(io);
  const token = await logins.find(hubUrl);
  if (token === undefined) return false;
  const answer = await post(hubUrl, 'revoke', { token });
  if (!answer.ok) throw refused(hubUrl, `status ${answer.status}`);
  await logins.keep(hubUrl, undefined);
  return true;
}

function post(hubUrl: string, endpoint: string, form: Record<string, string>): Promise<Response> {
  const body = new URLSearchParams({ client_id, ...form });
  return askHub(hubUrl, `/oauth2/${endpoint}`, { method: 'POST', body });
}

function refused(hubUrl: string, reason: string): HubError {
  return new HubError('forbidden', `The hub at ${hubUrl} refused this: ${reason}`);
}
