import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { pathOf, requires } from './requires.ts';

const programs = { nginx: 'nginx', Apache: 'apache2' } as const;

/** A web server of the system, serving a folder with a directory `docs/` below `path`. */
export interface WebServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

export type WebServerName = keyof typeof programs;

/** Whether that web server is installed; see requires. */
export function hasWebServer(name: WebServerName): boolean {
  return requires(programs[name]);
}

/** Starts nginx or Apache as their packages come, on loopback; `path` begins and ends with a slash. */
export async function startWebServer(name: WebServerName, path: string): Promise<WebServer> {
  const directory = makeSite(path);
  const port = await freePort();
  return await run(name, { directory, port, configuration: configurations[name](directory, port) });
}

/** The same as a command that another program runs, with the port to listen on as its argument. */
export function webServerCommand(
  name: WebServerName,
  path: string,
): Disposable & {
  readonly command: readonly string[];
} {
  const directory = makeSite(path);
  const template = join(directory, 'template.conf');
  writeFileSync(template, configurations[name](directory, 'PORT'));
  const script = `sed "s/PORT/$1/" ${template} > ${directory}/server.conf; exec ${startOf(name, directory).join(' ')}`;
  return {
    command: ['sh', '-c', script, 'sh'],
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

/** A folder for a web server, with the site that it serves. */
function makeSite(path: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'hub-web-server-'));
  chmodSync(directory, 0o755);
  mkdirSync(join(directory, 'root', path, 'docs'), { recursive: true });
  writeFileSync(join(directory, 'root', path, 'docs/index.html'), 'the page of docs');
  return directory;
}

function startOf(name: WebServerName, directory: string): readonly [string, ...string[]] {
  const file = join(directory, 'server.conf');
  return name === 'nginx'
    ? [pathOf('nginx'), '-c', file, '-p', directory]
    : [pathOf('apache2'), '-f', file, '-DFOREGROUND'];
}

/** Starts nginx as a proxy; `upstream` is what its `proxy_pass` names, `extra` further directives. */
export async function startProxy(upstream: string, extra = ''): Promise<WebServer> {
  const directory = mkdtempSync(join(tmpdir(), 'hub-proxy-'));
  const port = await freePort();
  const server = `
  listen 127.0.0.1:${port};
  location / {
    proxy_pass ${upstream};
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_set_header Upgrade $http_upgrade;
    proxy_set_header Connection $http_connection;
    ${extra}
  }`;
  return await run('nginx', { directory, port, configuration: nginxOf(directory, server) });
}

async function run(
  name: WebServerName,
  {
    directory,
    port,
    configuration,
  }: { readonly directory: string; readonly port: number; readonly configuration: string },
): Promise<WebServer> {
  writeFileSync(join(directory, 'server.conf'), configuration);
  const [program, ...args] = startOf(name, directory);
  const child = spawn(program, args, { stdio: 'ignore' });
  await answering(`http://127.0.0.1:${port}/`, child);
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** nginx with one server, whose directives these are. */
function nginxOf(directory: string, server: string): string {
  return `
daemon off;
master_process off;
pid ${directory}/nginx.pid;
error_log ${directory}/error.log;
events {}
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  server { ${server} }
}
`;
}

const configurations: Readonly<
  Record<WebServerName, (directory: string, port: number | 'PORT') => string>
> = {
  nginx: (directory, port) =>
    nginxOf(directory, `listen 127.0.0.1:${port}; root ${directory}/root;`),
  Apache: (directory, port) => `
ServerRoot ${directory}
DefaultRuntimeDir ${directory}
PidFile ${directory}/apache.pid
ErrorLog ${directory}/error.log
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule dir_module /usr/lib/apache2/modules/mod_dir.so
User www-data
Group www-data
DocumentRoot ${directory}/root
`,
};

async function answering(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`the web server ended with ${child.exitCode}`);
    const answer = await fetch(url, { redirect: 'manual' }).catch(() => undefined);
    if (answer !== undefined) return;
    await delay(50);
  }
}
