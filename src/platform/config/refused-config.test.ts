import { describe } from 'vitest';
import { declareRefusals, withService } from '../../../test/support/config-loading.ts';
import { tlsAdvice } from './suggestion.ts';

const notTextByLanguage =
  'Hub.title: must be text, or an object with one for each language, as in {"en": "…", "de": "…"}';

describe('a wrong configuration is refused:', () => {
  declareRefusals([
    // The file
    ['an empty file', '', ': is empty'],
    ['white space only', ' \n\t', ': is empty'],
    ['a missing comma', '{\n  "Hub": {}\n  "Proxy": {}\n}', ': comma expected'],
    ['an unclosed object', '{"Hub": {', /^: .* expected$/],
    ['text that is no JSON', 'bind_url = x', /^: invalid symbol/],
    ['a list as the whole file', '[]', /^: must hold one object/],
    ['a key that stands twice', '{"Hub": {},\n "Hub": {}}', 'Hub: stands twice: at line 1:2 too'],
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
    [
      'an internal address that is none',
      { Hub: { hub_bind_url: 'ftp://0.0.0.0:8443/' } },
      /^Hub\.hub_bind_url: is not an http:\/\/ or https:\/\/ URL/,
    ],
    [
      'a certificate of the hub itself',
      { Hub: { tls_cert: '/etc/ssl/hub.pem' } },
      `Hub.tls_cert: is not a known setting: ${tlsAdvice}`,
    ],
    ['a hyphen', { Hub: { 'bind-url': 'x' } }, /^Hub\.bind-url: .*did you mean `bind_url`/],
    ['an unlike key', { Hub: { frobnicate: 1 } }, 'Hub.frobnicate: is not a known setting'],
    ["another program's key", { Hub: { db_url: 'x' } }, /did you mean `database_url`/],
    [
      "a setting of JupyterHub's of another section",
      { Hub: { spawner_class: 'docker' } },
      'Hub.spawner_class: is not a known setting: it is Spawner.class here',
    ],
    [
      'a setting of JupyterHub that is not there',
      { Spawner: { pre_spawn_hook: 'x' } },
      'Spawner.pre_spawn_hook: is not a known setting: write a hook for Spawner.hooks (docs/how-to/write-a-hook.md)',
    ],
    ['a setting that is only spelt alike', { Hub: { logo_file: 'x' } }, /did you mean `logo`/],
    ['an old key', { Authenticator: { whitelist: [] } }, /did you mean `allowed_users`/],
    [
      'a key of another section',
      { Hub: { allow_all: true } },
      'Hub.allow_all: belongs in the section Authenticator',
    ],
    [
      'an unknown key of a service',
      withService({ comand: 'x' }),
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
    ['a number for text', { Hub: { title: 3 } }, notTextByLanguage],
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
    ['null for text', { Hub: { title: null } }, notTextByLanguage],
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
      'a text for a language that is none',
      { Hub: { login_message: { German: 'Hallo' } } },
      'Hub.login_message.German: is not the tag of a language such as en, de or pt-BR',
    ],
    [
      'an announcement that is empty for some',
      { Hub: { announcement: { text: { en: 'Hello', de: '' } } } },
      'Hub.announcement.text.de: must not be empty',
    ],
    [
      'a text in no language',
      { Hub: { footer_text: {} } },
      'Hub.footer_text: needs a text, as in {"en": "…", "de": "…"}',
    ],
    [
      'an empty text in a language',
      { Hub: { footer_text: { en: 'Hello', de: '' } } },
      'Hub.footer_text.de: must not be empty',
    ],
    [
      'a script behind a link for some readers',
      { Hub: { terms_url: { en: '/terms', de: 'javascript:alert(1)' } } },
      'Hub.terms_url.de: is no link: use an http:// or https:// URL, a mailto: address or a path such as /terms',
    ],
    ...[
      'http://avatars.example.org',
      'https://avatars.example.org/x',
      'avatars.example.org',
      '*',
    ].map((origin): [string, object, string] => [
      `pictures of users from ${origin}`,
      { Hub: { picture_origins: [origin] } },
      'Hub.picture_origins[0]: is not an https:// origin, such as https://avatars.example.org: no path or query',
    ]),
    [
      'a number for a text',
      { Hub: { footer_text: 3 } },
      'Hub.footer_text: must be text, or an object with one for each language, as in {"en": "…", "de": "…"}',
    ],
    ...[
      'javascript:alert(1)',
      ' javascript:alert(1)',
      '//example.org',
      '/\\\\example.org',
      'imprint',
    ].map((url): [string, object, string] => [
      `a link to ${url}`,
      { Hub: { footer_links: [{ title: 'Imprint', url }] } },
      'Hub.footer_links[0].url: is no link: use an http:// or https:// URL, a mailto: address or a path such as /terms',
    ]),
    [
      'a size in words',
      { Proxy: { max_body_size: 'large' } },
      /^Proxy\.max_body_size: use a number of bytes/,
    ],
    [
      'a negative size',
      { Proxy: { max_body_size: -1 } },
      'Proxy.max_body_size: must be at least 0',
    ],
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
      'an unknown kind of database',
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

    // Several at once
    [
      'slips in every section',
      {
        Hub: { bind_ulr: 'x', title: 3 },
        Authenticator: { allow_al: true },
        Spawner: { start_timeout: 'long' },
        Proxy: { idle_timeout: -1 },
      },
      /^Hub\.bind_ulr/,
      notTextByLanguage,
      /^Authenticator\.allow_al: .*`allow_all`/,
      'Spawner.start_timeout: must be a number',
      'Proxy.idle_timeout: must be at least 0',
    ],
    [
      'a slip and a contradiction elsewhere',
      { Hub: { titel: 'x', bind_url: 'http://127.0.0.1:8080' } },
      /^Hub\.hub_bind_url: needs another port/,
      /^Hub\.titel: .*`title`/,
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
      notTextByLanguage,
      /^Hub\.services\[0\]\.api_token: the environment variable/,
      'Hub.load_groups[0].name: is missing',
      'Hub.load_groups[2].name: group "x" stands twice: Hub.load_groups[0] has it too',
    ],
    [
      'several wrong fields of one service',
      withService({ url: 3, cwd: '', timeout: 'x', extra: 1 }),
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
  ]);
});
