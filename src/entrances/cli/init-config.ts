import { portOf } from '../../platform/addresses/host-address.ts';

/** Who logs people in: what its section of the configuration is called, and what it has to be given. */
interface Login {
  readonly section?: string;
  readonly asks: readonly string[];
}

/** By `Hub.authenticator_class`. */
export const logins: Readonly<Record<string, Login>> = {
  password: { asks: [] },
  pam: { asks: [] },
  oidc: { section: 'OIDCAuthenticator', asks: ['issuer', 'client_id'] },
  keycloak: { section: 'KeycloakAuthenticator', asks: ['issuer', 'client_id'] },
  github: { section: 'GitHubAuthenticator', asks: ['client_id'] },
  gitlab: { section: 'GitLabAuthenticator', asks: ['client_id'] },
  google: { section: 'GoogleAuthenticator', asks: ['client_id'] },
  microsoft: { section: 'MicrosoftAuthenticator', asks: ['tenant', 'client_id'] },
};

/** Who ends TLS for an https address, and what has to be known for it. */
export const tlsKinds: Readonly<Record<string, readonly string[]>> = {
  proxy: [],
  acme: ['email'],
  files: ['certificate', 'key'],
};

const jupyter = (program: string, token: string) =>
  `jupyter ${program} --no-browser --ServerApp.sock={socket} --ServerApp.base_url={prefix} ${token} --ServerApp.allow_remote_access=1`;

/** What a user's server can be, with the settings of `Spawner` for it. */
export const serverKinds: Readonly<Record<string, { program: string; settings: object }>> = {
  'jupyter-lab': {
    program: 'jupyter-lab',
    settings: { cmd: jupyter('lab', '--IdentityProvider.token='), default_url: '/lab' },
  },
  'jupyter-notebook': {
    program: 'jupyter-notebook',
    settings: {
      cmd: jupyter('notebook', '')
        .replaceAll('ServerApp', 'NotebookApp')
        .replace('  ', ' --NotebookApp.token= '),
    },
  },
  'code-server': {
    program: 'code-server',
    settings: {
      strip_prefix: true,
      cmd: 'code-server --auth none --disable-telemetry --socket {socket}',
    },
  },
};

/** What `hub init` was told. */
export interface InitAnswers {
  readonly title: string;
  /** Where people find the hub. */
  readonly url: URL;
  readonly login: string;
  /** What the login asks for, by the names of its settings. */
  readonly loginSettings: Readonly<Record<string, string>>;
  /** A key of `tlsKinds`; without meaning where the address is no https. */
  readonly tls: string;
  /** What that asks for. */
  readonly tlsSettings: Readonly<Record<string, string>>;
  /** Names at the login; empty where the first start makes an administrator. */
  readonly admins: readonly string[];
  /** A key of `serverKinds`, a command of its own, or `none`. */
  readonly server: string;
}

/** Environment variable of the secret that an identity provider gave. */
export const clientSecretVariable = 'HUB_CLIENT_SECRET';

/** The text of a commented configuration file. */
export function initConfigText(answers: InitAnswers, schema: string): string {
  const { title, url, login, loginSettings, admins, server } = answers;
  const { section, asks } = logins[login] ?? { asks: [] };
  const hasServers = server !== 'none';
  const settings = serverKinds[server]?.settings ?? { cmd: server };
  const hub = [
    `"title": ${json(title)},`,
    ...(url.protocol === 'https:'
      ? httpsLines(answers)
      : ['// Where people find the hub.', `"bind_url": ${json(url.href)},`]),
    '// Where servers and services reach the hub. Keep it off the network.',
    '"hub_bind_url": "http://127.0.0.1:8080",',
    '// One file beside this one, or "postgresql://hub@localhost/hub" for several hubs that are one.',
    '"database_url": "sqlite:hub.sqlite",',
    `"authenticator_class": ${json(login)},`,
    '// Shared apps, as in the how-to "Protect an app". For example:',
    '// { "name": "wiki", "url": "http://127.0.0.1:9000", "access": "gateway" }',
    '"services": [],',
    '// What everybody may do.',
    `"load_roles": [{ "name": "user", "scopes": ${json(hasServers ? ['self', 'access:services'] : withoutServers)} }]`,
  ];
  const authenticator = [
    ...(login === 'password'
      ? ['// Administrators make the accounts; the first start prints a link that makes the first.']
      : [
          '// Everybody whom that knows; without it only accounts that exist.',
          '"allow_all": true,',
        ]),
    '// Who may do everything.',
    `"admin_users": ${json(admins)}`,
  ];
  const spawner = [
    '// What each user gets under /user/<name>/. The gateway asks for the login before it.',
    '"access": "gateway",',
    ...Object.entries(settings).map(([name, value]) => `${json(name)}: ${json(value)},`),
    '// All servers run in the account of the hub, unless "system_user" names another.',
    '"home_dir": "homes/{username}",',
    '// Seconds without use after which a server is stopped.',
    '"idle_timeout_seconds": 3600',
  ];
  const provider = [
    ...asks.map((name) => `${json(name)}: ${json(loginSettings[name])},`),
    `"client_secret": { "env": ${json(clientSecretVariable)} }`,
  ];
  const sections = [
    block('Hub', hub),
    block('Authenticator', authenticator),
    ...(section === undefined ? [] : [block(section, provider)]),
    ...(hasServers ? [block('Spawner', spawner)] : []),
  ];
  return `// Made by hub init. Every setting, with its default and meaning, is in the schema; an editor shows it as you type.
{
  "$schema": ${json(schema)},

${sections.join(',\n\n')}
}
`;
}

function httpsLines({ url, tls, tlsSettings }: InitAnswers): string[] {
  if (tls === 'proxy') {
    return [
      '// Where people find the hub, and where the proxy with the certificate reaches it:',
      '// the how-to "Run behind TLS". A proxy on another machine is named in "trusted_proxies".',
      `"public_url": ${json(url.href)},`,
      `"bind_url": ${json(`http://127.0.0.1:8000${url.pathname}`)},`,
      '"trusted_proxies": ["127.0.0.1"],',
    ];
  }
  return [
    '// Where people find the hub, and where it listens. For ports below 1024 it needs a right: the how-to "Run behind TLS".',
    `"public_url": ${json(url.href)},`,
    `"bind_url": ${json(`https://0.0.0.0:${portOf(url)}${url.pathname}`)},`,
    '// Sends those who come by plain http to https.',
    '"redirect_bind_url": "http://0.0.0.0:80/",',
    ...(tls === 'acme'
      ? [
          "// Gets a certificate from Let's Encrypt, whose terms are accepted by this, and renews it.",
          `"acme": { "accept_terms": true, "email": ${json(tlsSettings['email'])} },`,
        ]
      : [
          '// Read again when they change.',
          `"certificates": [{ "certificate": ${json(tlsSettings['certificate'])}, "key": ${json(tlsSettings['key'])} }],`,
        ]),
  ];
}

/** The scopes of `self` but for those of servers. */
const withoutServers = [
  'read:users!user',
  'read:users:info!user',
  'users:activity!user',
  'tokens!user',
  'access:services',
];

function block(name: string, lines: readonly string[]): string {
  return `  ${json(name)}: {\n${lines.map((line) => `    ${line}\n`).join('')}  }`;
}

function json(value: unknown): string {
  return JSON.stringify(value).replaceAll('","', '", "');
}
