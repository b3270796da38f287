import type { ImportNote } from './plan-servers.ts';
import { type PythonConfig, pythonIn } from './python-config.ts';

/** What becomes of one old setting. */
export interface ConvertedValue {
  /** By the names that they have here. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly changed?: readonly ImportNote[];
  /** Why there is none. */
  readonly why?: string;
}

type Convert = (value: unknown, old: PythonConfig) => ConvertedValue;

/** Plugins by the names of classes and entry points, without `Local`, `OAuth`, `Authenticator` and `Spawner`. */
const plugins: Readonly<Record<'Authenticator' | 'Spawner', Readonly<Record<string, string>>>> = {
  Authenticator: {
    dummy: 'dummy',
    pam: 'pam',
    github: 'github',
    google: 'google',
    gitlab: 'gitlab',
    azuread: 'microsoft',
    auth0: 'auth0',
    okta: 'okta',
    generic: 'oauth2',
    ldap: 'ldap',
    native: 'password',
    firstuse: 'password',
    remoteuser: 'header',
  },
  Spawner: {
    process: 'local-process',
    simple: 'local-process',
    simpleprocess: 'local-process',
    systemd: 'local-process',
    sudo: 'local-process',
    docker: 'docker',
    systemuser: 'docker',
    kube: 'kubernetes',
    slurm: 'slurm',
  },
};

/** The plugin that a class or an entry point of JupyterHub names; undefined where there is none. */
export function pluginOf(kind: 'Authenticator' | 'Spawner', value: unknown): string | undefined {
  const name =
    String(pythonIn(value) ?? value ?? '')
      .split(/[.:]/)
      .at(-1) ?? '';
  const plain = name
    .toLowerCase()
    .replaceAll(/[^a-z0-9]|authenticator$|spawner$/g, '')
    .replace(/^local/, '')
    .replace(/oauth$/, '');
  return plugins[kind][plain];
}

const one = (name: string, value: unknown): ConvertedValue => ({ settings: { [name]: value } });

const pluginClass =
  (kind: 'Authenticator' | 'Spawner', name: string): Convert =>
  (value) => {
    const plugin = pluginOf(kind, value);
    if (plugin !== undefined) return one(name, plugin);
    const why = `there is no plugin for ${pythonIn(value) ?? String(value)}`;
    return { settings: {}, why };
  };

/** From the first of these sections that says it. */
const bindUrl =
  (
    name: string,
    keys: readonly [ip: string, port: string],
    standard: readonly [string, number],
  ): Convert =>
  (_, { JupyterHub = {} }) => {
    const host = JupyterHub[keys[0]] || standard[0];
    const port = JupyterHub[keys[1]] ?? standard[1];
    const isPublic = name === 'Hub.bind_url';
    const base = isPublic ? (JupyterHub['base_url'] ?? '/') : '';
    const scheme = isPublic && JupyterHub['ssl_cert'] ? 'https' : 'http';
    return one(name, `${scheme}://${String(host)}:${String(port)}${String(base)}`);
  };
const publicUrl = bindUrl('Hub.bind_url', ['ip', 'port'], ['127.0.0.1', 8000]);
const hubUrl = bindUrl('Hub.hub_bind_url', ['hub_ip', 'hub_port'], ['127.0.0.1', 8081]);
const connectUrl = bindUrl(
  'Hub.hub_connect_url',
  ['hub_connect_ip', 'hub_connect_port'],
  ['127.0.0.1', 8081],
);

const certificate: Convert = (_, { JupyterHub = {} }) => ({
  settings: {
    'Hub.certificates': [{ certificate: JupyterHub['ssl_cert'], key: JupyterHub['ssl_key'] }],
    ...publicUrl(undefined, { JupyterHub }).settings,
  },
});

const serviceKeys = [
  'name',
  'admin',
  'url',
  'api_token',
  'command',
  'environment',
  'user',
  'cwd',
  'info',
  'display',
  'oauth_client_id',
  'oauth_redirect_uri',
  'oauth_no_confirm',
  'oauth_client_allowed_scopes',
] as const;

const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** With the keys that are known, as far as they say something. */
function pick(value: unknown, keys: readonly string[]): Record<string, unknown> {
  const entries = Object.entries(recordOf(value));
  return Object.fromEntries(entries.filter(([key, each]) => keys.includes(key) && each !== null));
}

const isCuller = (service: unknown) =>
  /cull/.test(JSON.stringify(recordOf(service)['command'] ?? ''));

const services: Convert = (value) => {
  const [culler] = listOf(value).filter(isCuller);
  const seconds = /--timeout=(\d+)/.exec(JSON.stringify(culler ?? ''))?.[1] ?? '600';
  const others = listOf(value).filter((service) => !isCuller(service));
  return {
    settings: {
      'Hub.services': others.map((service) => {
        const { apiToken, ...rest } = recordOf(service);
        return pick(
          { ...(apiToken !== undefined && { api_token: apiToken }), ...rest },
          serviceKeys,
        );
      }),
      ...(culler !== undefined && { 'Spawner.idle_timeout_seconds': Number(seconds) }),
    },
    ...(culler !== undefined && {
      changed: [
        {
          what: `service ${String(recordOf(culler)['name'])} → Spawner.idle_timeout_seconds`,
          why: 'the hub stops idle servers itself',
        },
      ],
    }),
  };
};

const roles: Convert = (value, { JupyterHub = {} }) => {
  const cullers = listOf(JupyterHub['services'])
    .filter(isCuller)
    .map((each) => recordOf(each)['name']);
  const kept = listOf(value).flatMap((role) => {
    const { services: holders, ...rest } = pick(role, [
      'name',
      'description',
      'scopes',
      'users',
      'groups',
      'services',
    ]);
    if (holders === undefined) return [rest];
    const left = listOf(holders).filter((name) => !cullers.includes(name));
    const isOfCuller =
      left.length === 0 && listOf(holders).length > 0 && !rest['users'] && !rest['groups'];
    return isOfCuller ? [] : [{ ...rest, services: left }];
  });
  return one('Hub.load_roles', kept);
};

const groups: Convert = (value) =>
  one(
    'Hub.load_groups',
    Object.entries(recordOf(value)).map(([name, group]) =>
      Array.isArray(group)
        ? { name, users: group }
        : { name, ...pick(group, ['users', 'properties']) },
    ),
  );

const organizations: Convert = (value) => {
  const [teams, whole] = [true, false].map((isTeam) =>
    listOf(value).filter((name) => String(name).includes(':') === isTeam),
  ) as [unknown[], unknown[]];
  return {
    settings: {
      ...(whole.length > 0 && { 'GitHubAuthenticator.allowed_organizations': whole }),
      ...(teams.length > 0 && { 'GitHubAuthenticator.allowed_teams': teams }),
    },
  };
};

const volumes =
  (readOnly: boolean): Convert =>
  (value, { DockerSpawner = {} }) => {
    const of = (list: unknown, always: boolean) =>
      Object.entries(recordOf(list)).map(([source, to]) => {
        const { bind = to, mode } = recordOf(to);
        return { source, target: bind, ...((always || mode === 'ro') && { read_only: true }) };
      });
    const other = of(DockerSpawner[readOnly ? 'volumes' : 'read_only_volumes'], !readOnly);
    return one('Spawner.volumes', [...of(value, readOnly), ...other]);
  };

/** What a profile says of the server itself; the rest is of the spawner. */
const profileKeys = [
  'cmd',
  'args',
  'environment',
  'default_url',
  'mem_limit',
  'mem_guarantee',
  'cpu_limit',
  'cpu_guarantee',
] as const;

const profiles: Convert = (value) => {
  const kept = listOf(value).map((each) => {
    const {
      display_name: title,
      slug,
      description,
      default: isDefault,
      kubespawner_override: override,
    } = recordOf(each);
    const name = String(slug ?? title ?? '')
      .toLowerCase()
      .replaceAll(/[^a-z0-9]+/g, '-')
      .replaceAll(/^-|-$/g, '');
    const options = pick(override, ['image', 'node_selector', 'tolerations']);
    return {
      name,
      display_name: title,
      ...(description !== undefined && { description }),
      ...(isDefault === true && { default: true }),
      ...pick(override, profileKeys),
      ...(Object.keys(options).length > 0 && { options }),
    };
  });
  const lost = listOf(value).flatMap((each) => {
    const { profile_options: choices, kubespawner_override: override } = recordOf(each);
    const known: readonly string[] = [...profileKeys, 'image', 'node_selector', 'tolerations'];
    return [
      ...Object.keys(recordOf(override)).filter((key) => !known.includes(key)),
      ...(choices === undefined ? [] : ['profile_options']),
    ];
  });
  if (lost.length === 0) return one('Spawner.profiles', kept);
  const why = `the hub's profiles do not have ${[...new Set(lost)].join(', ')}`;
  return {
    settings: { 'Spawner.profiles': kept },
    changed: [{ what: 'KubeSpawner.profile_list', why }],
  };
};

/** Names of the one domain are without it there. */
const hostedDomain: Convert = (value) => {
  const domains = Array.isArray(value) ? value : [value];
  return {
    settings: {
      'GoogleAuthenticator.hosted_domain': domains,
      ...(domains.length === 1 && { 'GoogleAuthenticator.strip_domain': domains[0] }),
    },
  };
};

const logLevels = ['debug', 'info', 'warn', 'error', 'fatal'];
const logLevel: Convert = (value) => {
  const name = String(value).toLowerCase().replace('warning', 'warn').replace('critical', 'fatal');
  return one('Hub.log_level', logLevels[Math.round(Number(value) / 10) - 1] ?? name);
};

/** `ifnotpresent` of Docker is `missing` here, and `skip` is `never`. */
const pullPolicy: Convert = (value) => {
  const names: Record<string, string> = { ifnotpresent: 'missing', skip: 'never' };
  const name = String(value).toLowerCase();
  return one('DockerSpawner.pull_policy', names[name] ?? name);
};

const pullSecrets: Convert = (value) =>
  one(
    'KubernetesSpawner.pull_secrets',
    (Array.isArray(value) ? value : [value]).map((each) => recordOf(each)['name'] ?? each),
  );

/** Settings whose values have another form here, by their old names. */
const converts: Readonly<Record<string, Convert>> = {
  'JupyterHub.authenticator_class': pluginClass('Authenticator', 'Hub.authenticator_class'),
  'JupyterHub.spawner_class': pluginClass('Spawner', 'Spawner.class'),
  'JupyterHub.ip': publicUrl,
  'JupyterHub.port': publicUrl,
  'JupyterHub.base_url': publicUrl,
  'JupyterHub.hub_ip': hubUrl,
  'JupyterHub.hub_port': hubUrl,
  'JupyterHub.hub_connect_ip': connectUrl,
  'JupyterHub.hub_connect_port': connectUrl,
  'JupyterHub.ssl_cert': certificate,
  'JupyterHub.ssl_key': certificate,
  'JupyterHub.services': services,
  'JupyterHub.load_roles': roles,
  'JupyterHub.load_groups': groups,
  'JupyterHub.log_level': logLevel,
  'Application.log_level': logLevel,
  'GitHubOAuthenticator.allowed_organizations': organizations,
  'GoogleOAuthenticator.hosted_domain': hostedDomain,
  'DockerSpawner.volumes': volumes(false),
  'DockerSpawner.read_only_volumes': volumes(true),
  'DockerSpawner.pull_policy': pullPolicy,
  'KubeSpawner.profile_list': profiles,
  'KubeSpawner.image_pull_secrets': pullSecrets,
};

/** What becomes of a setting whose place here is known, or is not. */
export function convertValue(
  path: string,
  target: string | undefined,
  value: unknown,
  old: PythonConfig,
): ConvertedValue {
  const convert = converts[path];
  if (convert !== undefined) return convert(value, old);
  return { settings: target === undefined ? {} : { [target]: value } };
}
