import { describe, expect, test } from 'vitest';
import { strongKey, useConfigLoading } from '../../test/support/config-loading.ts';

const { problemsOf } = useConfigLoading();

type Row = readonly [name: string, content: unknown, ...expected: (string | RegExp)[]];

const service = (fields: object) => ({ Hub: { services: [{ name: 'wiki', ...fields }] } });

const rows: readonly Row[] = [
  // The file
  ['an empty file', '', ': is empty'],
  ['white space only', ' \n\t', ': is empty'],
  ['a missing comma', '{\n  "Hub": {}\n  "Proxy": {}\n}', ': line 3:3: comma expected'],
  ['an unclosed object', '{"Hub": {', /^: line 1:\d+: .* expected$/],
  ['text that is no JSON', 'bind_url = x', /^: line 1:1: invalid symbol/],
  ['a list as the whole file', '[]', /^: must hold one object/],
  [
    'a key that stands twice',
    '{"Hub": {},\n "Hub": {}}',
    'Hub: stands twice: line 1:2 and line 2:2',
  ],
  [
    'a setting that stands twice',
    '{"Hub": {"title": "a", "title": "b"}}',
    /^Hub\.title: stands twice/,
  ],
  [
    'a key that would change a prototype',
    '{"Hub": {"__proto__": {}}}',
    /^Hub\.__proto__: is not allowed/,
  ],
  ['a schema that is no text', { $schema: 3 }, '$schema: must be text'],
  ['a section that is null', { Hub: null }, 'Hub: must be an object'],
  ['a section that is a list', { Proxy: [] }, 'Proxy: must be an object'],
  [
    'a plugin section that is text',
    { OIDCAuthenticator: 'x' },
    'OIDCAuthenticator: must be an object',
  ],

  // Unknown keys
  [
    'a letter swap',
    { Hub: { bind_ulr: 'x' } },
    'Hub.bind_ulr: is not a known setting; did you mean `bind_url`?',
  ],
  [
    'camel case',
    { Hub: { bindUrl: 'x' } },
    'Hub.bindUrl: is not a known setting; did you mean `bind_url`?',
  ],
  ['a hyphen', { Hub: { 'bind-url': 'x' } }, /^Hub\.bind-url: .*did you mean `bind_url`/],
  ['an unlike key', { Hub: { frobnicate: 1 } }, 'Hub.frobnicate: is not a known setting'],
  ["another program's key", { Hub: { db_url: 'x' } }, /did you mean `database_url`/],
  ['an old key', { Authenticator: { whitelist: [] } }, /did you mean `allowed_users`/],
  [
    'a key of another section',
    { Hub: { allow_all: true } },
    'Hub.allow_all: belongs in the section Authenticator',
  ],
  [
    'an unknown key of a service',
    service({ comand: 'x' }),
    'Hub.services[0].comand: is not a known setting; did you mean `command`?',
  ],
  [
    'an unknown key of a role',
    { Hub: { load_roles: [{ name: 'a', scope: [] }] } },
    /^Hub\.load_roles\[0\]\.scope: .*did you mean `scopes`/,
  ],
  [
    'an unknown key of a custom scope',
    { Hub: { custom_scopes: { 'custom:x': { description: 'x', subscope: [] } } } },
    /^Hub\.custom_scopes\.custom:x\.subscope: .*`subscopes`/,
  ],
  [
    'an unknown key of a route',
    { Proxy: { extra_routes: { '/x/': { target: 'http://h/', acess: 'public' } } } },
    /^Proxy\.extra_routes\.\/x\/\.acess: .*`access`/,
  ],
  [
    'a key with strange characters',
    { Hub: { 'a b"c': 1 } },
    'Hub["a b\\"c"]: is not a known setting',
  ],

  // Wrong types and values
  ['a number for text', { Hub: { title: 3 } }, 'Hub.title: must be text'],
  [
    'text for a number',
    { Hub: { cookie_max_age_days: '14' } },
    'Hub.cookie_max_age_days: must be a number',
  ],
  [
    'text for a switch',
    { Hub: { cleanup_servers: 'no' } },
    'Hub.cleanup_servers: must be true or false',
  ],
  [
    'text for a list',
    { Authenticator: { admin_users: 'ada' } },
    'Authenticator.admin_users: must be a list',
  ],
  ['null for text', { Hub: { title: null } }, 'Hub.title: must be text'],
  ['an empty title', { Hub: { title: '' } }, 'Hub.title: must not be empty'],
  [
    'a lifetime of nothing',
    { Hub: { cookie_max_age_days: 0 } },
    'Hub.cookie_max_age_days: must be more than 0',
  ],
  [
    'a number without end',
    '{"Hub": {"cookie_max_age_days": 1e999}}',
    'Hub.cookie_max_age_days: must be a number',
  ],
  [
    'a fraction of an attempt',
    { Authenticator: { lockout_attempts: 1.5 } },
    'Authenticator.lockout_attempts: must be a whole number',
  ],
  [
    'a negative age',
    { Authenticator: { auth_refresh_age: -1 } },
    'Authenticator.auth_refresh_age: must be at least 0',
  ],
  [
    'an unknown log level',
    { Hub: { log_level: 'loud' } },
    /^Hub\.log_level: must be one of "trace"/,
  ],
  [
    'a colour by name',
    { Hub: { accent_color: 'red' } },
    'Hub.accent_color: is not a colour such as #2457d6',
  ],
  [
    'a size in words',
    { Proxy: { max_body_size: 'large' } },
    /^Proxy\.max_body_size: use a number of bytes/,
  ],
  ['a negative size', { Proxy: { max_body_size: -1 } }, 'Proxy.max_body_size: must be at least 0'],
  [
    'a broken pattern',
    { Authenticator: { username_pattern: '(' } },
    'Authenticator.username_pattern: is not a regular expression',
  ],
  [
    'a prefix in lower case',
    { Hub: { environment_prefixes: ['hub'] } },
    /^Hub\.environment_prefixes\[0\]: does not match/,
  ],
  [
    'no prefixes',
    { Hub: { environment_prefixes: [] } },
    'Hub.environment_prefixes: needs at least 1 entry',
  ],
  [
    'a landing page elsewhere',
    { Hub: { default_url: 'http://x' } },
    'Hub.default_url: must begin with "/"',
  ],
  [
    'no authenticator',
    { Hub: { authenticator_class: [] } },
    'Hub.authenticator_class: needs at least 1 entry',
  ],
  [
    'a number as authenticator',
    { Hub: { authenticator_class: 3 } },
    'Hub.authenticator_class: must be text or an object or a list',
  ],
  [
    'an entry without class',
    { Hub: { authenticator_class: [{ name: 'a' }] } },
    'Hub.authenticator_class[0].class: is missing',
  ],
  [
    'an entry with a bad name',
    { Hub: { authenticator_class: [{ class: 'oidc', name: 'My IdP' }] } },
    'Hub.authenticator_class[0].name: may hold a-z, 0-9 and hyphens',
  ],
  [
    'a database nobody speaks',
    { Hub: { database_url: 'mysql://x' } },
    /^Hub\.database_url: must begin with sqlite/,
  ],
  [
    'a database of the wrong type',
    { Hub: { database_url: 5 } },
    /^Hub\.database_url: must be text/,
  ],
  [
    'an unknown cache',
    { Hub: { keyv_url: 'memcached://x' } },
    /^Hub\.keyv_url: must begin with redis/,
  ],

  // Addresses
  [
    'https without a certificate',
    { Hub: { bind_url: 'https://x/' } },
    /^Hub\.bind_url: is not an http:/,
  ],
  [
    'an address without scheme',
    { Hub: { bind_url: '127.0.0.1:8000' } },
    /^Hub\.bind_url: is not an http:/,
  ],
  [
    'an address with a query',
    { Hub: { bind_url: 'http://h/?a' } },
    /^Hub\.bind_url: is not an http:/,
  ],
  [
    'an address with a user name',
    { Hub: { bind_url: 'http://u@h/' } },
    'Hub.bind_url: cannot hold a user name',
  ],
  [
    'a base URL with strange characters',
    { Hub: { bind_url: 'http://h/a%2Fb/' } },
    /^Hub\.bind_url: its path may hold/,
  ],
  ...['a%2fb', 'a(b)', 'a*', '%E9', 'a:b', 'a%3Bb', '%00'].map(
    (path) =>
      [
        `the base URL /${path}/`,
        { Hub: { bind_url: `http://h/${path}/` } },
        /^Hub\.bind_url: its path may hold/,
      ] as const,
  ),
  [
    'a base URL with empty segments',
    { Hub: { bind_url: 'http://h//a/' } },
    /^Hub\.bind_url: its path may hold/,
  ],
  [
    'two listeners on one port',
    { Hub: { bind_url: 'http://127.0.0.1:8080' } },
    'Hub.hub_bind_url: needs another port than bind_url (8080)',
  ],
  [
    'one port on every address',
    { Hub: { bind_url: 'http://0.0.0.0:8080' } },
    /^Hub\.hub_bind_url: needs another port/,
  ],
  [
    'a path of the internal API',
    { Hub: { hub_bind_url: 'http://h:1/api' } },
    /^Hub\.hub_bind_url: takes no path/,
  ],
  [
    'an internal API on every address, of which children would be told',
    { Hub: { hub_bind_url: 'http://0.0.0.0:8080' } },
    /^Hub\.hub_connect_url: is needed, since no one can connect to http:\/\/0\.0\.0\.0:8080/,
  ],
  [
    'an address for children that leads nowhere',
    { Hub: { hub_bind_url: 'http://[::]:8080', hub_connect_url: 'http://[::]:8080' } },
    /^Hub\.hub_connect_url: no one can connect to \[::\]/,
  ],
  [
    'an address for children of another kind',
    { Hub: { hub_connect_url: 'tcp://10.0.0.5:8080' } },
    /^Hub\.hub_connect_url: is not an http\(s\) URL/,
  ],
  [
    'an address for children with a path',
    { Hub: { hub_connect_url: 'http://10.0.0.5:8080/api' } },
    /^Hub\.hub_connect_url: takes no path/,
  ],
  [
    'an address for children with a password',
    { Hub: { hub_connect_url: 'http://me:secret@10.0.0.5:8080' } },
    /^Hub\.hub_connect_url: cannot hold a user name/,
  ],
  [
    'a profile of a spawner that is not configured',
    {
      Spawner: { class: ['local-process', 'slurm'], profiles: [{ name: 'a', spawner: 'docker' }] },
    },
    'Spawner.profiles[0].spawner: is to be "local-process" or "slurm", a spawner of Spawner.class',
  ],
  [
    'two spawners of one name',
    { Spawner: { class: ['docker', { class: 'docker' }] } },
    /^Spawner\.class\[1\]\.name: spawner "docker" stands twice/,
  ],
  [
    'a public URL of another kind',
    { Hub: { public_url: 'ftp://x/' } },
    'Hub.public_url: is not an http(s) URL',
  ],
  [
    'a public URL with a query',
    { Hub: { public_url: 'https://x/?q' } },
    /^Hub\.public_url: cannot hold/,
  ],
  [
    'two different base URLs',
    { Hub: { bind_url: 'http://h/a/', public_url: 'https://x/b/' } },
    'Hub.public_url: its path must be that of bind_url (/a/)',
  ],
  [
    'a trusted proxy by name',
    { Hub: { trusted_proxies: ['lb.local'] } },
    /^Hub\.trusted_proxies\[0\]: is neither/,
  ],
  [
    'a range that is too narrow',
    { Hub: { trusted_proxies: ['10.0.0.0/8', '10.0.0.0/33'] } },
    /^Hub\.trusted_proxies\[1\]: is neither/,
  ],

  // Services
  ['a service without name', { Hub: { services: [{}] } }, 'Hub.services[0].name: is missing'],
  [
    'a service with a slash',
    { Hub: { services: [{ name: 'a/b' }] } },
    /^Hub\.services\[0\]\.name: is not usable in a URL/,
  ],
  ['a service by its name', { Hub: { services: ['wiki'] } }, 'Hub.services[0]: must be an object'],
  ['services as an object', { Hub: { services: {} } }, 'Hub.services: must be a list'],
  [
    'a service elsewhere',
    service({ url: 'ftp://x' }),
    'Hub.services[0].url: is not an http:// or https:// URL',
  ],
  [
    'a command as a number',
    service({ command: 3 }),
    'Hub.services[0].command: must be text or a list',
  ],
  ['an empty command', service({ command: [] }), 'Hub.services[0].command: needs at least 1 entry'],
  ['a bad argument', service({ command: ['a', 1] }), 'Hub.services[0].command[1]: must be text'],
  [
    'a variable with a hyphen',
    service({ environment: { 'A-B': '1' } }),
    'Hub.services[0].environment.A-B: is not a name for an environment variable',
  ],
  [
    'a variable with a list',
    service({ environment: { A: [] } }),
    'Hub.services[0].environment.A: must be text or a number or true or false',
  ],
  [
    'an unknown access',
    service({ access: 'open' }),
    'Hub.services[0].access: must be one of "service", "gateway", "public"',
  ],
  [
    'a client id without prefix',
    service({ oauth_client_id: 'wiki' }),
    'Hub.services[0].oauth_client_id: must start with "service-"',
  ],

  // Secrets
  [
    'a secret from two places',
    service({ api_token: { env: 'A', file: 'b' } }),
    /^Hub\.services\[0\]\.api_token: must be text, \{"env"/,
  ],
  [
    'a secret as a number',
    service({ api_token: 12345678901 }),
    /^Hub\.services\[0\]\.api_token: must be text, \{"env"/,
  ],
  [
    'a missing variable',
    service({ api_token: { env: 'NOT_THERE' } }),
    'Hub.services[0].api_token: the environment variable NOT_THERE is not set',
  ],
  [
    'an empty variable',
    service({ api_token: { env: 'EMPTY' } }),
    'Hub.services[0].api_token: the environment variable EMPTY is empty',
  ],
  [
    'a variable of the prototype',
    service({ api_token: { env: 'toString' } }),
    /the environment variable toString is not set/,
  ],
  [
    'a missing secret file',
    service({ api_token: { file: 'nope' } }),
    /^Hub\.services\[0\]\.api_token: .*nope cannot be read: there is no such file/,
  ],
  ['a folder as secret file', service({ api_token: { file: '.' } }), /is not a file$/],
  [
    'a missing variable in a list',
    { Hub: { cookie_secret: [strongKey, { env: 'NOT_THERE' }] } },
    'Hub.cookie_secret[1]: the environment variable NOT_THERE is not set',
  ],
  ['a short key', { Hub: { cookie_secret: 'abc' } }, /^Hub\.cookie_secret\[0\]: is too weak/],
  [
    'a key of one letter',
    { Hub: { cookie_secret: 'a'.repeat(64) } },
    /^Hub\.cookie_secret\[0\]: is too weak/,
  ],
  ['a short key', { Hub: { cookie_secret: strongKey.slice(33) } }, /is too weak/],

  // Contradictions
  [
    'one authenticator twice',
    { Hub: { authenticator_class: ['oidc', { class: 'oidc' }] } },
    /^Hub\.authenticator_class\[1\]\.name: authenticator "oidc" stands twice/,
  ],
  [
    'one group twice',
    { Hub: { load_groups: [{ name: 'a' }, { name: 'b' }, { name: 'a' }] } },
    'Hub.load_groups[2].name: group "a" stands twice: Hub.load_groups[0] has it too',
  ],
  [
    'automatic login to two',
    { Hub: { authenticator_class: ['a', 'b'] }, Authenticator: { auto_login: true } },
    'Authenticator.auto_login: needs exactly one authenticator to go to',
  ],
  [
    'a lock-out shorter than it begins',
    { Authenticator: { lockout_delay: 60, lockout_max_delay: 30 } },
    'Authenticator.lockout_delay: is longer than lockout_max_delay',
  ],
  [
    'two default profiles',
    {
      Spawner: {
        profiles: [
          { name: 'a', default: true },
          { name: 'b', default: true },
        ],
      },
    },
    'Spawner.profiles: has more than one default',
  ],
  [
    'one profile twice',
    { Spawner: { profiles: [{ name: 'a' }, { name: 'a' }] } },
    /^Spawner\.profiles\[1\]\.name: profile "a" stands twice/,
  ],
  [
    'a route over the hub',
    { Proxy: { extra_routes: { '/hub/x/': 'http://h/' } } },
    /^Proxy\.extra_routes\.\/hub\/x\/: would hide/,
  ],
  [
    'a route over everything',
    { Proxy: { extra_routes: { '/': 'http://h/' } } },
    /would hide the hub's own pages/,
  ],
  [
    'a route without slash',
    { Proxy: { extra_routes: { '/x': 'http://h/' } } },
    'Proxy.extra_routes./x: must begin and end with a slash',
  ],
  [
    'headers slower than the request',
    { Proxy: { request_timeout: 10 } },
    'Proxy.headers_timeout: is longer than request_timeout',
  ],

  // An origin for each user
  [
    'a host that is no URL',
    { Hub: { subdomain_host: 'hub.example.org' } },
    /^Hub\.subdomain_host: is not an http/,
  ],
  [
    'subdomains with a path',
    { Hub: { subdomain_host: 'http://hub.example.org/x/' } },
    'Hub.subdomain_host: must be an origin such as https://hub.example.org',
  ],
  [
    'subdomains of another scheme',
    { Hub: { public_url: 'https://h.example.org/', subdomain_host: 'http://h.example.org' } },
    'Hub.subdomain_host: must begin with https:// as public_url does (https://h.example.org/)',
  ],
  ...['http://127.0.0.1:8000', 'http://[::1]', 'http://2130706433'].map(
    (url): Row => [
      `subdomains of the address ${url}`,
      { Hub: { subdomain_host: url } },
      'Hub.subdomain_host: must name a domain: an IP address has no subdomains',
    ],
  ),
  [
    'subdomains of a name with a dot at its end',
    { Hub: { subdomain_host: 'http://hub.example.org.' } },
    'Hub.subdomain_host: must not end in a dot',
  ],
  [
    'subdomains of a name that leaves no room for a label',
    { Hub: { subdomain_host: `http://${'a.'.repeat(95)}org` } },
    'Hub.subdomain_host: is longer than 189 characters',
  ],
  [
    'a hub that may be taken for a service',
    {
      Hub: {
        public_url: 'https://portal--service.example.org/',
        subdomain_host: 'https://example.org',
      },
    },
    /^Hub\.public_url: portal--service\.example\.org may become the host of a user's server/,
  ],

  // Several at once
  [
    'slips in every section',
    {
      Hub: { bind_ulr: 'x', title: 3 },
      Authenticator: { allow_al: true },
      Spawner: { start_timeout: 'long' },
      Proxy: { idle_timeout: -1 },
    },
    'Hub.title: must be text',
    /^Hub\.bind_ulr/,
    /^Authenticator\.allow_al: .*`allow_all`/,
    'Spawner.start_timeout: must be a number',
    'Proxy.idle_timeout: must be at least 0',
  ],
  [
    'a slip and a contradiction elsewhere',
    { Hub: { titel: 'x', bind_url: 'http://127.0.0.1:8080' } },
    /^Hub\.titel: .*`title`/,
    /^Hub\.hub_bind_url: needs another port/,
  ],
  [
    'a wrong type, a missing secret and a contradiction',
    {
      Hub: {
        title: 3,
        services: [{ name: 'a', api_token: { env: 'NOT_THERE' } }],
        load_groups: [{}, { name: 'x' }, { name: 'x' }],
      },
    },
    /^Hub\.services\[0\]\.api_token: the environment variable/,
    'Hub.load_groups[0].name: is missing',
    'Hub.title: must be text',
    'Hub.load_groups[2].name: group "x" stands twice: Hub.load_groups[0] has it too',
  ],
  [
    'several wrong fields of one service',
    service({ url: 3, cwd: '', timeout: 'x', extra: 1 }),
    'Hub.services[0].url: must be text',
    'Hub.services[0].cwd: must not be empty',
    'Hub.services[0].timeout: must be a number',
    'Hub.services[0].extra: is not a known setting',
  ],
  [
    'several wrong entries of a list',
    { Hub: { authenticator_class: [3, { class: 'a', name: 'B' }] } },
    'Hub.authenticator_class[0]: must be text or an object',
    'Hub.authenticator_class[1].name: may hold a-z, 0-9 and hyphens',
  ],
];

describe('a wrong configuration is refused:', () => {
  test.for(rows)('%s', async ([, content, ...expected]) => {
    const problems = await problemsOf(content, { env: { EMPTY: '' } });
    expect(problems).toHaveLength(expected.length);
    for (const [index, line] of expected.entries()) {
      if (typeof line === 'string') expect(problems[index]).toBe(line);
      else expect(problems[index]).toMatch(line);
    }
  });
});
