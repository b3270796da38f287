import { createServer, type IncomingMessage } from 'node:http';
import { createRemoteJWKSet, jwtVerify } from 'jose';

// No login code: with "access": "gateway" the hub lets no one through who may not come in, and says in
// headers who it is. The signed assertion proves that the hub said it, even to an app that others on
// the same network can reach.
const env = process.env;
const apiUrl = env['HUB_API_URL'] ?? 'http://127.0.0.1:8080/hub/api';
const hubUrl = env['HUB_BASE_URL'] ?? 'http://127.0.0.1:8000/';
const keys = createRemoteJWKSet(
  new URL(env['HUB_ASSERTION_JWKS_URL'] ?? `${apiUrl}/assertion-keys`),
);

async function whoIsThere(request: IncomingMessage): Promise<string> {
  const { payload } = await jwtVerify(String(request.headers['x-hub-assertion']), keys, {
    algorithms: ['EdDSA'],
    issuer: [hubUrl, hubUrl.replace(/\/$/, '')],
    audience: `service-${env['HUB_SERVICE_NAME'] ?? 'plain-app'}`,
    requiredClaims: ['sub', 'exp'],
  });
  return String(payload.sub);
}

function greeting(name: string, { headers }: IncomingMessage): string {
  const decoded = (key: string) => decodeURIComponent(String(headers[key] ?? ''));
  return `Hello, ${name}.

X-Hub-User:   ${decoded('x-hub-user')}
X-Hub-Groups: ${decoded('x-hub-groups')}
X-Hub-Scopes: ${decoded('x-hub-scopes')}
`;
}

const server = createServer((request, response) => {
  response.setHeader('content-type', 'text/plain; charset=utf-8');
  whoIsThere(request).then(
    (name) => response.end(greeting(name, request)),
    (error: unknown) => {
      const { message } = error as Error;
      // Without one the hub itself looks now and then whether the app is there.
      if (request.headers['x-hub-assertion'] !== undefined) {
        console.error(`a request with an invalid assertion: ${message}`);
      }
      response.writeHead(403).end('This app answers only requests that come through the hub.\n');
    },
  );
});

const { hostname, port } = new URL(env['HUB_SERVICE_URL'] ?? 'http://127.0.0.1:10102');
server.listen(Number(port), hostname);
