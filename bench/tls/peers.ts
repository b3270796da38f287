import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { freePort } from '../../test/support/free-port.ts';
import { startNginx } from '../gateway/nginx.ts';
import { type PinnedProcess, proxyCore, startPinned } from '../gateway/pinned-process.ts';

/** Another proxy, which ends TLS and asks the hub about each request. */
export interface Peer extends AsyncDisposable {
  readonly process: PinnedProcess;
  /** Ends in a slash. */
  readonly url: string;
}

interface Setting {
  readonly directory: string;
  readonly certificate: string;
  readonly key: string;
  readonly upstreamPort: number;
  readonly hubPort: number;
}

/** Hosts at which they have the app; the hub has to know them as such. */
export const peerHosts = { caddy: 'caddy.localhost', nginx: 'nginx.localhost' };

/** Caddy as docs/how-to/forward-auth.md sets it up. */
export async function startCaddy(setting: Setting): Promise<Peer> {
  const { directory, certificate, key, upstreamPort, hubPort } = setting;
  const port = await freePort();
  const url = `https://${peerHosts.caddy}:${port}`;
  const file = join(directory, 'Caddyfile');
  const identity = ['User', 'Groups', 'Scopes', 'Assertion'].map((name) => `X-Hub-${name}`);
  await writeFile(
    file,
    `{
  admin off
  auto_https off
}
${url} {
  bind 127.0.0.1
  tls ${certificate} ${key}
  forward_auth 127.0.0.1:${hubPort} {
    uri /hub/forward-auth
    copy_headers ${identity.join(' ')}
  }
  reverse_proxy 127.0.0.1:${upstreamPort} {
${identity.map((name) => `    header_up ${name} {header.${name}}`).join('\n')}
  }
}
`,
  );
  const started = await startPinned({
    core: proxyCore,
    command: ['caddy', 'run', '--config', file, '--adapter', 'caddyfile'],
    port,
    environment: { XDG_CONFIG_HOME: directory, XDG_DATA_HOME: directory },
  });
  return peer(started, url);
}

/** nginx likewise, with kept connections to the app too. */
export async function startTlsNginx(setting: Setting): Promise<Peer> {
  const { directory, certificate, key, upstreamPort, hubPort } = setting;
  const port = await freePort();
  const fields = ['user', 'groups', 'scopes', 'assertion'];
  const kept = `
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $server_name;`;
  const http = `  upstream application {
    server 127.0.0.1:${upstreamPort};
    keepalive 256;
    keepalive_requests 1000000000;
  }
  upstream hub {
    server 127.0.0.1:${hubPort};
    keepalive 256;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port} ssl backlog=4096;
    server_name ${peerHosts.nginx};
    ssl_certificate ${certificate};
    ssl_certificate_key ${key};
    location / {
      auth_request /.hub/auth-request;
${fields.map((name) => `      auth_request_set $hub_${name} $upstream_http_x_hub_${name};`).join('\n')}
${fields.map((name) => `      proxy_set_header X-Hub-${name} $hub_${name};`).join('\n')}
      proxy_pass http://application;${kept}
    }
    location = /.hub/auth-request {
      internal;
      proxy_pass http://hub/hub/auth-request;${kept}
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $server_name;
      proxy_set_header X-Forwarded-Method $request_method;
      proxy_set_header X-Forwarded-Uri $request_uri;
    }
  }`;
  const started = await startNginx({ core: proxyCore, directory, name: 'tls-proxy', port, http });
  return peer(started, `https://${peerHosts.nginx}:${port}`);
}

function peer(process: PinnedProcess, url: string): Peer {
  return {
    process,
    url: `${url}/`,
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}
