import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';
import { takesConnections } from './raw-request.ts';
import { pathOf, requires } from './requires.ts';
import { until } from './test-hub.ts';

const programs = { nginx: 'nginx', Apache: 'apache2', Caddy: 'caddy' } as const;

/** A web server of the system, serving a folder with a directory `docs/` below `path`. */
export interface WebServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
}

export type WebServerName = keyof typeof programs;
export type SiteServerName = Exclude<WebServerName, 'Caddy'>;

/** Whether that web server is installed; see requires. */
export function hasWebServer(name: WebServerName): boolean {
  return requires(programs[name]);
}

/** Starts nginx or Apache as their packages come, on loopback; `path` begins and ends with a slash. */
export async function startWebServer(name: SiteServerName, path: string): Promise<WebServer> {
  const directory = makeSite(path);
  const port = await freePort();
  return await run(name, { directory, port, configuration: configurations[name](directory, port) });
}

/** The same as a command that another program runs, with the port to listen on as its argument. */
export function webServerCommand(
  name: SiteServerName,
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
  switch (name) {
    case 'nginx':
      return [pathOf('nginx'), '-c', file, '-p', directory];
    case 'Apache':
      return [pathOf('apache2'), '-f', file, '-DFOREGROUND'];
    case 'Caddy':
      return [pathOf('caddy'), 'run', '--config', file, '--adapter', 'caddyfile'];
  }
}

/** Starts a web server on a loopback port that its configuration, made for a folder of its own, names. */
export async function startConfigured(
  name: WebServerName,
  port: number,
  configurationIn: (directory: string) => string,
): Promise<WebServer> {
  const directory = mkdtempSync(join(tmpdir(), 'hub-proxy-'));
  return await run(name, { directory, port, configuration: configurationIn(directory) });
}

/** Starts nginx as a proxy; `upstream` is what its `proxy_pass` names, `extra` further directives. */
export async function startProxy(upstream: string, extra = ''): Promise<WebServer> {
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
  return await startConfigured('nginx', port, (directory) =>
    nginxOf(directory, `server { ${server} }`),
  );
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
  const env = { ...process.env, HOME: directory, XDG_DATA_HOME: directory };
  const child = spawn(program, args, { stdio: 'ignore', env });
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`);
    return await takesConnections(port);
  }, `${name} listens`);
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

/** The whole configuration of an nginx, in whose `http` these directives stand. */
export function nginxOf(directory: string, http: string): string {
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
  ${http}
}
`;
}

const configurations: Readonly<
  Record<SiteServerName, (directory: string, port: number | 'PORT') => string>
> = {
  nginx: (directory, port) =>
    nginxOf(directory, `server { listen 127.0.0.1:${port}; root ${directory}/root; }`),
  Apache: (directory, port) => apacheOf(directory, port, ['dir'], `DocumentRoot ${directory}/root`),
};

/** The whole configuration of an Apache with further modules, as its package names them. */
export function apacheOf(
  directory: string,
  port: number | 'PORT',
  modules: readonly string[],
  directives: string,
): string {
  const loading = ['mpm_event', 'authz_core', ...modules].map(
    (name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`,
  );
  return `
ServerRoot ${directory}
DefaultRuntimeDir ${directory}
PidFile ${directory}/apache.pid
ErrorLog ${directory}/error.log
ServerName 127.0.0.1
Listen 127.0.0.1:${port}
${loading.join('\n')}
User www-data
Group www-data
${directives}
`;
}
