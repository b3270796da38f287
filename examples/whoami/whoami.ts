import { createServer } from 'node:http';
import { HubOAuth, nodeListener, type UserModel } from '@hub-gateway/hub/client';

// Everything it needs to know stands in the HUB_* variables that the hub passes.
const hubAuth = new HubOAuth();
const prefix = hubAuth.service_prefix;

const server = createServer(
  nodeListener(hubAuth, (request, response, { user, url }) => {
    const path = url.split('?', 1)[0];
    if (path === `${prefix}api`) {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(user));
      return;
    }
    if (path === `${prefix}logout`) {
      const { location, setCookies } = hubAuth.logout(request);
      response.writeHead(302, { location, 'set-cookie': [...setCookies] }).end();
      return;
    }
    response.writeHead(path === prefix ? 200 : 404, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
    });
    response.end(path === prefix ? page(user) : 'There is nothing here.');
  }),
);

const { hostname, port } = new URL(process.env['HUB_SERVICE_URL'] ?? 'http://127.0.0.1:10101');
server.listen(Number(port), hostname);

function page(user: UserModel): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Who am I?</title>
<style>
  :root { color-scheme: light dark; --line: light-dark(#d5d5dc, #44444e); }
  body { font: 1rem/1.6 system-ui, sans-serif; max-width: 36rem; margin: 10vh auto; padding: 0 1rem; }
  dt { font-weight: 600; margin-top: 1rem; }
  dd { margin: 0; overflow-wrap: anywhere; border-left: 3px solid var(--line); padding-left: .75rem; }
</style>
<h1>Hello, ${escapeHtml(user.name)}</h1>
<dl>
  <dt>Groups</dt><dd>${escapeHtml(user.groups?.join(', ') || 'none')}</dd>
  <dt>What this page may do for you</dt><dd>${escapeHtml(user.scopes?.join(', ') || 'nothing')}</dd>
</dl>
<p><a href="${escapeHtml(prefix)}api">The same as JSON</a> · <a href="${escapeHtml(prefix)}logout">Log out</a></p>
</html>`;
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
