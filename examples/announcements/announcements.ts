import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type Allowed, HubOAuth, nodeListener, type UserModel } from '@hub-gateway/hub/client';

interface Announcement {
  readonly text: string;
  readonly author: string;
  readonly at: string;
}

const writeScope = 'custom:announcements:write';
const maxBodyBytes = 10_000;
const maxAnnouncements = 100;
const file = process.env['ANNOUNCEMENTS_FILE'] ?? 'announcements.json';

// The scope to write is asked for at login, and held by users who have a role with it.
const hubAuth = new HubOAuth({ service_name: 'announcements', request_scopes: [writeScope] });
const prefix = hubAuth.service_prefix;
let announcements: readonly Announcement[] = existsSync(file)
  ? (JSON.parse(readFileSync(file, 'utf8')) as Announcement[])
  : [];

const server = createServer(nodeListener(hubAuth, serve));
const { hostname, port } = new URL(process.env['HUB_SERVICE_URL'] ?? 'http://127.0.0.1:10103');
server.listen(Number(port), hostname);

async function serve(request: IncomingMessage, response: ServerResponse, access: Allowed) {
  const { user } = access;
  const path = access.url.split('?', 1)[0];
  if (path !== prefix && path !== `${prefix}api`) return void response.writeHead(404).end();
  const isApi = path === `${prefix}api`;

  if (request.method === 'POST') {
    if (!mayWrite(user))
      return void response.writeHead(403).end('You may not announce anything.\n');
    const text = await readText(request);
    if (text === undefined)
      return void response.writeHead(400).end('A text is missing or too long.\n');
    announce({ text, author: user.name, at: new Date().toISOString() });
    if (isApi) return void response.writeHead(201).end();
    return void response.writeHead(303, { location: prefix }).end();
  }
  if (isApi) {
    response.setHeader('content-type', 'application/json');
    return void response.end(JSON.stringify(announcements));
  }
  response.writeHead(200, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
  });
  response.end(page(user, await countUsers()));
}

function mayWrite(user: UserModel): boolean {
  return user.scopes?.includes(writeScope) === true;
}

/** Asks the hub with the service's own token: it may list users because its role says so. */
async function countUsers(): Promise<number | undefined> {
  const response = await fetch(`${hubAuth.api_url}/users`, {
    headers: { authorization: `token ${hubAuth.api_token}` },
    signal: AbortSignal.timeout(5_000),
  }).catch(() => undefined);
  if (response?.ok !== true) return undefined;
  const users: unknown = await response.json();
  return Array.isArray(users) ? users.length : undefined;
}

function announce(announcement: Announcement): void {
  announcements = [announcement, ...announcements].slice(0, maxAnnouncements);
  writeFileSync(`${file}.new`, JSON.stringify(announcements, null, 2));
  renameSync(`${file}.new`, file);
}

/** The text of a form or of JSON such as `{"text": "…"}`. */
async function readText(request: IncomingMessage): Promise<string | undefined> {
  let body = '';
  for await (const chunk of request.setEncoding('utf8')) {
    body += chunk;
    if (body.length > maxBodyBytes) return undefined;
  }
  const isJson = request.headers['content-type']?.startsWith('application/json') === true;
  try {
    const text: unknown = isJson
      ? (JSON.parse(body) as { text?: unknown }).text
      : new URLSearchParams(body).get('text');
    return typeof text === 'string' && text.trim() !== '' ? text.trim() : undefined;
  } catch {
    return undefined;
  }
}

function page(user: UserModel, userCount: number | undefined): string {
  const items = announcements.map(
    ({ text, author, at }) =>
      `<article><p>${escapeHtml(text)}</p><small>${escapeHtml(author)}, <time>${escapeHtml(at)}</time></small></article>`,
  );
  const form = `<form method="post" action="${escapeHtml(prefix)}">
  <label for="text">New announcement</label>
  <textarea id="text" name="text" rows="3" required maxlength="2000"></textarea>
  <button>Announce</button>
</form>`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Announcements</title>
<style>
  :root { color-scheme: light dark; --line: light-dark(#d5d5dc, #44444e); }
  body { font: 1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 8vh auto; padding: 0 1rem; }
  article { border-left: 3px solid var(--line); padding-left: .75rem; margin: 1.5rem 0; }
  article p { margin: 0; white-space: pre-line; overflow-wrap: anywhere; }
  label, textarea { display: block; width: 100%; box-sizing: border-box; font: inherit; }
</style>
<h1>Announcements</h1>
${userCount === undefined ? '' : `<p>For all ${userCount} people on this hub.</p>`}
${mayWrite(user) ? form : ''}
${items.join('\n') || '<p>There is nothing new.</p>'}
</html>`;
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
