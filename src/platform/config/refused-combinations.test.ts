import { describe } from 'vitest';
import { declareRefusals, strongKey, withService } from '../../../test/support/config-loading.ts';

describe('settings that cannot be, alone or together, are refused:', () => {
  declareRefusals([
    // Addresses
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
      'a route for visitors with certificates, whose authorities nobody names',
      { Spawner: { limits: { client_certificate: 'required' } } },
      'Spawner.limits.client_certificate: needs Hub.client_authorities and an https:// bind_url: nobody could pass',
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
      'TLS at the internal address without certificates for it',
      { Hub: { hub_bind_url: 'https://10.0.0.5:8080' } },
      /^Hub\.internal_ssl: must be true, since hub_bind_url is an https:\/\/ address/,
    ],
    [
      'certificates for an internal address without TLS',
      { Hub: { internal_ssl: true, hub_connect_url: 'http://10.0.0.5:8080' } },
      /^Hub\.internal_ssl: needs an https:\/\/ hub_bind_url/,
    ],
    [
      'an internal address at which servers and services have no certificate',
      { Hub: { internal_ssl: true, hub_bind_url: 'https://10.0.0.5:8080' } },
      /^Hub\.hub_connect_url: is needed with internal_ssl/,
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
        Spawner: {
          class: ['local-process', 'slurm'],
          profiles: [{ name: 'a', spawner: 'docker' }],
        },
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
      'Hub.public_url: is not an http:// or https:// URL',
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
      /^Hub\.services\[0\]\.name: Use only letters, digits/,
    ],
    [
      'a service by its name',
      { Hub: { services: ['wiki'] } },
      'Hub.services[0]: must be an object',
    ],
    ['services as an object', { Hub: { services: {} } }, 'Hub.services: must be a list'],
    [
      'a service elsewhere',
      withService({ url: 'ftp://x' }),
      'Hub.services[0].url: is not an http:// or https:// URL',
    ],
    [
      'a command as a number',
      withService({ command: 3 }),
      'Hub.services[0].command: must be text or a list',
    ],
    [
      'an empty command',
      withService({ command: [] }),
      'Hub.services[0].command: needs at least 1 entry',
    ],
    [
      'a bad argument',
      withService({ command: ['a', 1] }),
      'Hub.services[0].command[1]: must be text',
    ],
    [
      'a variable with a hyphen',
      withService({ environment: { 'A-B': '1' } }),
      'Hub.services[0].environment.A-B: is not a name for an environment variable',
    ],
    [
      'a variable with a list',
      withService({ environment: { A: [] } }),
      'Hub.services[0].environment.A: must be text or a number or true or false',
    ],
    [
      'an unknown access',
      withService({ access: 'open' }),
      'Hub.services[0].access: must be one of "service", "gateway", "public"',
    ],
    [
      'a client id of a server',
      withService({ oauth_client_id: 'hub-user-ada' }),
      'Hub.services[0].oauth_client_id: must be printable ASCII and not start with "hub-"',
    ],
    [
      'a script as one of several redirect URIs',
      withService({ oauth_redirect_uris: ['/cb', 'javascript:alert(1)//'] }),
      /^Hub\.services\[0\]\.oauth_redirect_uris\[1\]: is neither a path nor/,
    ],

    // Secrets
    [
      'a secret from two places',
      withService({ api_token: { env: 'A', file: 'b' } }),
      /^Hub\.services\[0\]\.api_token: must be text, \{"env"/,
    ],
    [
      'a secret as a number',
      withService({ api_token: 12345678901 }),
      /^Hub\.services\[0\]\.api_token: must be text, \{"env"/,
    ],
    [
      'a missing variable',
      withService({ api_token: { env: 'NOT_THERE' } }),
      'Hub.services[0].api_token: the environment variable NOT_THERE is not set',
    ],
    [
      'an empty variable',
      withService({ api_token: { env: 'EMPTY' } }),
      'Hub.services[0].api_token: the environment variable EMPTY is empty',
    ],
    [
      'a variable of the prototype',
      withService({ api_token: { env: 'toString' } }),
      /the environment variable toString is not set/,
    ],
    [
      'a missing secret file',
      withService({ api_token: { file: 'nope' } }),
      /^Hub\.services\[0\]\.api_token: .*nope cannot be read: there is no such file/,
    ],
    ['a folder as secret file', withService({ api_token: { file: '.' } }), /is not a file$/],
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
      'a start ahead with a profile that is not there',
      { Spawner: { start_at: [{ groups: ['a'], time: '09:00', profile: 'b' }] } },
      'Spawner.start_at[0].profile: names no profile of Spawner.profiles',
    ],
    [
      'one profile twice',
      { Spawner: { profiles: [{ name: 'a' }, { name: 'a' }] } },
      /^Spawner\.profiles\[1\]\.name: profile "a" stands twice/,
    ],
    [
      'another Host for a server that checks visitors itself',
      { Spawner: { host: 'upstream' } },
      /^Spawner\.host: needs "access": "gateway"; hub-singleuser has flags for it/,
    ],
    [
      'a profile whose app strips a prefix itself',
      {
        Spawner: {
          access: 'gateway',
          profiles: [{ name: 'a', access: 'server', strip_prefix: true }],
        },
      },
      /^Spawner\.profiles\[0\]\.strip_prefix: needs "access": "gateway"/,
    ],
    [
      'a header that no visitor would be believed to be without',
      { Spawner: { access: 'gateway', identity_headers: { user: 'Cookie' } } },
      /^Spawner\.identity_headers\.user: is no name for such a header/,
    ],
    [
      'one header for two things',
      { Spawner: { access: 'gateway', identity_headers: { user: 'X-Who', email: 'x-who' } } },
      /^Spawner\.identity_headers: has the same header twice/,
    ],
    [
      'an identity for an open route',
      { Proxy: { extra_routes: { '/x/': { target: 'http://h/', identity_headers: {} } } } },
      /^Proxy\.extra_routes\.\/x\/\.identity_headers: is for guarded routes only/,
    ],
    [
      'scopes for an open route',
      {
        Proxy: {
          extra_routes: { '/x/': { target: 'http://h/', oauth_client_allowed_scopes: ['self'] } },
        },
      },
      /^Proxy\.extra_routes\.\/x\/\.oauth_client_allowed_scopes: is for guarded routes only/,
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
      'Proxy.extra_routes./x: must begin and end with a slash; a host name may stand before it, in lower case and without port',
    ],
    [
      'a route of the host of the hub',
      {
        Hub: { public_url: 'https://hub.example.org/' },
        Proxy: { extra_routes: { 'hub.example.org/x/': 'http://h/' } },
      },
      /^Proxy\.extra_routes\.hub\.example\.org\/x\/: names the host of the hub itself/,
    ],
    [
      'a route over the hub, in another spelling',
      { Proxy: { extra_routes: { '/%68ub/x/': 'http://h/' } } },
      /would hide/,
    ],
    [
      'a route that no path can have',
      { Proxy: { extra_routes: { '/a%2fb/': 'http://h/' } } },
      /^Proxy\.extra_routes\.\/a%2fb\/: is not a plain path/,
    ],
    [
      'rules of a route that is open to everyone',
      { Proxy: { extra_routes: { '/x/': { target: 'http://h/', rules: [{ allow: 'nobody' }] } } } },
      /^Proxy\.extra_routes\.\/x\/\.rules: is for guarded routes only/,
    ],
    [
      'a route without target',
      { Proxy: { extra_routes: { '/x/': { access: 'gateway' } } } },
      'Proxy.extra_routes./x/.target: is missing',
    ],
    [
      'a target of what another proxy forwards',
      {
        Proxy: { extra_routes: { 'x.example/': { access: 'forward-auth', target: 'http://h/' } } },
      },
      /^Proxy\.extra_routes\.x\.example\/\.target: is not for "forward-auth"/,
    ],
    [
      'headers slower than the request',
      { Proxy: { request_timeout: 10 } },
      'Proxy.headers_timeout: is longer than request_timeout',
    ],
  ]);
});
