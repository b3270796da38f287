import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Cores, type PinnedProcess, startPinned } from './pinned-process.ts';

/** Starts nginx as one process without a master, so that its CPU time is one figure. */
export async function startNginx(options: {
  readonly core: Cores;
  readonly directory: string;
  readonly name: string;
  readonly port: number;
  /** Text of the `http` block. */
  readonly http: string;
}): Promise<PinnedProcess> {
  const { directory, name, port, http } = options;
  const file = join(directory, `${name}.conf`);
  await writeFile(
    file,
    `daemon off;
master_process off;
pid ${directory}/${name}.pid;
error_log stderr crit;
events { worker_connections 8192; }
http {
  access_log off;
  sendfile on;
  keepalive_requests 1000000000;
  keepalive_timeout 300s;
  client_max_body_size 0;
  client_body_temp_path ${directory}/${name}-body;
  proxy_temp_path ${directory}/${name}-proxy;
  fastcgi_temp_path ${directory}/${name}-fastcgi;
  uwsgi_temp_path ${directory}/${name}-uwsgi;
  scgi_temp_path ${directory}/${name}-scgi;
${http}
}
`,
  );
  return startPinned({
    core: options.core,
    command: ['nginx', '-p', directory, '-c', file, '-e', 'stderr'],
    port,
  });
}

/** An upstream that answers 1 KiB from memory, and files of a folder under any path with /files/. */
export function upstreamConfig(port: number, filesDirectory: string): string {
  return `  server {
    listen 127.0.0.1:${port} backlog=4096;
    # What a browser and a proxy send is more than the 1 KiB that is read at first by default.
    client_header_buffer_size 8k;
    location / {
      default_type text/plain;
      return 200 "${'x'.repeat(1024)}";
    }
    location ~ /files/([a-z]*)$ { alias ${filesDirectory}/$1; }
  }`;
}

const forwardedHeaders = `
      proxy_http_version 1.1;
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_request_buffering off;`;

/** nginx as plain reverse proxy, and under /checked/ with every request checked by the hub first. */
export function proxyConfig(options: {
  readonly port: number;
  readonly upstreamPort: number;
  readonly echoPort: number;
  readonly hubPort: number;
  readonly token: string;
}): string {
  return `  upstream application {
    server 127.0.0.1:${options.upstreamPort};
    keepalive 256;
    keepalive_requests 1000000000;
  }
  upstream echo {
    server 127.0.0.1:${options.echoPort};
    keepalive 256;
  }
  map $http_upgrade $connection_upgrade {
    default upgrade;
    '' '';
  }
  upstream hub {
    server 127.0.0.1:${options.hubPort};
    keepalive 256;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${options.port} backlog=4096;
    location / {
      proxy_pass http://application;${forwardedHeaders}
      proxy_set_header Connection "";
    }
    location /services/echo/ {
      proxy_pass http://echo;${forwardedHeaders}
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
    }
    location /checked/ {
      auth_request /check;
      auth_request_set $visitor $upstream_http_x_request_id;
      proxy_pass http://application;${forwardedHeaders}
      proxy_set_header Connection "";
      proxy_set_header X-Hub-User $visitor;
    }
    location = /check {
      internal;
      proxy_pass http://hub/hub/api/user;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Cookie "";
      proxy_set_header Authorization "token ${options.token}";
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
    }
  }`;
}
