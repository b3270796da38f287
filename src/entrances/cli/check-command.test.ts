import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { useCommandLine } from '../../../test/support/command-line.ts';
import { requires } from '../../../test/support/requires.ts';
import { startTlsFront } from '../../../test/support/tls-front.ts';

const { directory, hub, writeConfig } = useCommandLine();

describe('hub check', () => {
  test('sums up what is fine', async () => {
    writeConfig({
      Hub: { services: [{ name: 'wiki', url: 'http://127.0.0.1:9/', api_token: 'long enough' }] },
    });
    const { exitCode, stdout, stderr } = await hub('check');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('hub.config.json is fine');
    expect(stdout).toContain('services        1 (0 managed)');
    expect(stderr).toBe('');
    expect(existsSync(join(directory(), 'hub_cookie_secret'))).toBe(false);
    expect(existsSync(join(directory(), 'hub.sqlite'))).toBe(false);
  });

  test('lists the problems of every part at once and exits with 2', async () => {
    writeConfig({
      Hub: {
        titel: 'x',
        services: [{ name: 'a', url: 'http://127.0.0.1:9/', api_token: 'short' }],
        load_roles: [{ name: 'reader', scopes: ['read:nothing'], services: ['b'] }],
        load_groups: [{ name: 'a/b' }],
        custom_scopes: { 'custom:x y': { description: 'x' } },
        authenticator_class: 'nope',
      },
      Authenticator: { allowed_users: ['a/b'] },
      Unknown: {},
    });
    writeFileSync(join(directory(), 'hub_cookie_secret'), 'short', { mode: 0o600 });
    const { exitCode, stderr } = await hub('check');
    expect(exitCode).toBe(2);
    for (const path of [
      'Hub.titel:',
      'Hub.services[0].api_token:',
      'Hub.load_roles[0].scopes[0]:',
      'Hub.load_roles[0].services[0]:',
      'Hub.load_groups[0].name:',
      'Hub.custom_scopes["custom:x y"]:',
      'Hub.authenticator_class:',
      'Authenticator.allowed_users[0]:',
      'Hub.cookie_secret_file:',
      'Unknown:',
    ]) {
      const shown = stderr.replace('custom_scopes.custom:x y', 'custom_scopes["custom:x y"]');
      expect(shown.replaceAll(/ line \d+:\d+:/g, '')).toContain(`\n  ${path} `);
    }
  });

  test('prints warnings and succeeds', async () => {
    writeConfig({ Authenticator: { allow_all: true, allowed_users: ['ada'] } });
    const { exitCode, stderr } = await hub('check');
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/^warning: line \d+:\d+: Authenticator\.allowed_users: /);
  });

  test('says which icons of services no page can show', async () => {
    const icons = ['📈', '/services/x/icon.png', 'http://127.0.0.1:8000/icon.png', undefined];
    const wrong = ['much too long', 'https://example.org/icon.png', '', 7];
    writeConfig({
      Hub: {
        bind_url: 'http://127.0.0.1:8000',
        services: [...icons, ...wrong].map((icon, index) => ({
          name: `service-${index}`,
          url: 'http://127.0.0.1:9/',
          info: { icon },
        })),
      },
    });
    const { exitCode, stderr } = await hub('check');
    expect(exitCode).toBe(0);
    const reported = stderr.match(/Hub\.services\[\d\]\.info\.icon: is not shown: /g);
    expect(reported?.map((each) => /\d/.exec(each)?.[0])).toEqual(['4', '5', '6', '7']);
    expect(stderr).toContain('give an emoji, up to three letters, or the path of an image');
  });

  test('says of each problem where it is in the file, in that order, and hides no name', async () => {
    const services = [
      '{ "name": "a", "url": "nonsense" }',
      '{ "name": "a", "url": "nonsense" }',
      '{ "name": "b" }',
    ];
    const lines = [
      '{',
      '  "Spawner": { "cmd": [] },',
      '  "Hub": {',
      `    "services": [\n${services.join(',\n')}],`,
      '    "load_roles": [{ "name": "readers", "scopes": ["nope"] }]',
      '  }',
      '}',
    ];
    writeFileSync(join(directory(), 'hub.config.json'), lines.join('\n'));
    const { exitCode, stderr } = await hub('check');
    expect(exitCode).toBe(2);
    expect(
      stderr
        .split('\n')
        .slice(1)
        .map((line) => line.replace(/^(.*?: \S+):.*/, '$1')),
    ).toEqual([
      '  line 2:16: Spawner.cmd',
      '  line 5:16: Hub.services[0].url',
      '  line 6:3: Hub.services[1].name',
      '  line 6:16: Hub.services[1].url',
      '  line 8:52: Hub.load_roles[0].scopes[0]',
      '',
    ]);
  });

  test('says which texts of the operator cannot be used, and why', async () => {
    const folder = join(directory(), 'languages');
    mkdirSync(folder);
    writeFileSync(join(folder, 'fr.json'), '{\n"Log in": 5,\n"Error {0}": "Erreur"}');
    writeFileSync(join(folder, 'it.json'), '{');
    writeFileSync(join(folder, 'no tag.json'), '{}');
    mkdirSync(join(folder, 'es.json'));
    writeFileSync(join(folder, 'pl.json'), Buffer.from([0x7b, 0xff, 0x7d]));
    writeFileSync(join(folder, 'da.json'), '\u{FEFF}{"Log in": "Log ind"}');
    writeFileSync(join(folder, 'sv.json'), ' '.repeat(1_100_000));
    const parts = join(directory(), 'parts');
    mkdirSync(parts);
    writeFileSync(join(parts, 'footer.ja.html'), '<p>Hi</p>');
    writeConfig({
      Hub: {
        languages_dir: 'languages',
        language: 'nl',
        templates_dir: 'parts',
        authenticator_class: [{ class: 'password', label: { en: 'Us', tu: 'Biz' } }],
        login_message: { en: 'Hello', da: 'Hej', dk: 'Hej' },
        footer_links: [{ title: { de: 'Hilfe', ja: 'Help' }, url: '/help' }],
        services: [{ name: 'wiki', info: { title: { en: 'Wiki', jp: 'Wiki' } } }],
      },
      Spawner: { profiles: [{ name: 'small', display_name: { en: 'Small', ge: 'Klein' } }] },
      PasswordAuthenticator: { label: { en: 'Staff', gr: 'Personal' } },
    });
    const { exitCode, stderr } = await hub('check');
    expect(exitCode).toBe(0);
    for (const problem of [
      `${join(folder, 'fr.json')}, line 2: the text "Log in" must be a string; the built-in text is shown`,
      `${join(folder, 'fr.json')}, line 3: the text "Error {0}" lacks the placeholder {0}`,
      `${join(folder, 'it.json')} is not JSON: `,
      `${join(folder, 'no tag.json')} must be named for a language`,
      `${join(folder, 'es.json')} is a folder, not a file`,
      `${join(folder, 'pl.json')} is not text in UTF-8`,
      `${join(folder, 'sv.json')} is larger than 1024 KiB`,
      'there is no nl.json in Hub.languages_dir',
      'Hub.login_message.dk: is never shown, and no page is in dk: there are en, de, da, and what Hub.languages_dir adds; did you mean `d',
      'Hub.services[0].info.title.jp: is never shown',
      'Spawner.profiles[0].display_name.ge: is never shown',
      'PasswordAuthenticator.label.gr: is never shown',
      'Hub.authenticator_class[0].label.tu: is never shown',
      'Hub.footer_links[0].title.ja: is never shown, and no page is in ja',
      `Hub.templates_dir: ${join(parts, 'footer.ja.html')} is never shown, and no page is in ja`,
    ]) {
      expect(stderr).toContain(problem);
    }
    // A byte order mark, as some editors write it, is no mistake.
    expect(stderr).not.toContain('da.json');
    expect(stderr).not.toContain('Hub.login_message.da');
    writeConfig({ Hub: { languages_dir: 'languages', language: 'fr' } });
    expect((await hub('check')).stderr).toContain(
      'Hub.language: fr.json in Hub.languages_dir has no text that can be used; pages are in English',
    );
    writeConfig({ Hub: { languages_dir: 'gone' } });
    expect((await hub('check')).stderr).toContain(
      `${join(directory(), 'gone')} cannot be read: there is no such file`,
    );
  });

  test('prints all texts, to begin a translation with', async () => {
    writeConfig({});
    const english = JSON.parse((await hub('texts')).stdout) as Record<string, string>;
    expect(english).toMatchObject({ 'Log in': 'Log in', 'recipient::To': 'To' });
    const german = JSON.parse((await hub('texts --language de')).stdout);
    expect(Object.keys(german)).toEqual(Object.keys(english));
    expect(german).toMatchObject({ 'Log in': 'Anmelden', 'recipient::To': 'An' });
    const { exitCode, stderr } = await hub('texts -l ja');
    expect(exitCode).toBe(1);
    expect(stderr).toContain('There are en, de.');
  });

  test('recommends an origin for each user where users run code on that of the hub', async () => {
    const recommended = /^recommended: Hub\.subdomain_host: .* http:\/\/127\.0\.0\.1:8000 /m;
    writeConfig({ Spawner: { cmd: ['true'] } });
    expect((await hub('check')).stdout).toMatch(recommended);
    writeConfig({});
    expect((await hub('check')).stdout).not.toContain('recommended');
    writeConfig({
      Hub: {
        public_url: 'http://hub.localhost:8000/',
        subdomain_host: 'http://hub.localhost:8000',
      },
      Spawner: { cmd: ['true'] },
    });
    const separate = await hub('check');
    expect(separate.stdout).not.toContain('recommended');
    expect(separate.stderr).toMatch(
      /^warning: (?:line \d+:\d+: )?Hub\.subdomain_host: .* is plain http/m,
    );
  });

  test.skipIf(!requires('openssl'))('says where a setting is that hosts contradict', async () => {
    await using front = await startTlsFront(['hub.localhost'], 9);
    const url = `https://hub.localhost:${front.port}`;
    writeConfig({ Hub: { public_url: `${url}/`, subdomain_host: url } });
    const { stderr } = await hub('check');
    expect(stderr).toMatch(/^warning: line 1:\d+: Hub\.subdomain_host: the certificate at /m);
  });

  test('warns of programs that are not there, and of no others', async () => {
    const cwd = join(directory(), 'app');
    mkdirSync(cwd);
    writeFileSync(join(cwd, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 });
    writeConfig({
      Hub: {
        services: [
          { name: 'gone', command: ['no-such-program', '--port=1'] },
          { name: 'here', command: ['sh', '-c', 'true'] },
          { name: 'own-path', command: ['run.sh'], environment: { PATH: cwd } },
          { name: 'own-folder', command: ['./run.sh'], cwd: 'app' },
          { name: 'elsewhere', url: 'http://127.0.0.1:9' },
        ],
      },
      Spawner: {
        cmd: ['jupyterhub-no-such', '{username}'],
        profiles: [
          { name: 'a', cmd: ['hub-singleuser', '--', 'true'] },
          { name: 'b', cmd: ['{directory}/app/run.sh'] },
          { name: 'c', cmd: ['/opt/{username}/run'] },
          { name: 'd', cmd: ['/no/such/program'] },
        ],
      },
    });
    const { exitCode, stderr } = await hub('check');
    expect(exitCode).toBe(0);
    const lines = stderr.split('\n').filter((line) => line.includes('command'));
    const places = lines.map((line) => Number(/line \d+:(\d+): /.exec(line)?.[1]));
    expect(places).toEqual(places.toSorted((one, other) => one - other));
    expect(lines.map((line) => line.replace(/line \d+:\d+: /, ''))).toEqual([
      'warning: Hub.services[0].command: command not found in PATH: no-such-program',
      'warning: Spawner.cmd: command not found in PATH: jupyterhub-no-such',
      'warning: Spawner.profiles[3].cmd: command not found: /no/such/program',
    ]);
  });

  test('takes another file', async () => {
    writeFileSync(
      join(directory(), 'other.json'),
      '{"Hub": {"bind_url": "http://127.0.0.1:8765/"}}',
    );
    expect((await hub('check --config other.json')).stdout).toContain('http://127.0.0.1:8765/');
    expect((await hub('check --config missing.json')).exitCode).toBe(2);
  });

  test('shows the example to be fine', async () => {
    const example = join(import.meta.dirname, '../../../hub.config.example.json');
    const { exitCode, stdout, stderr } = await hub(`check --config ${example}`);
    expect(stderr).toBe('');
    expect(exitCode).toBe(0);
    expect(stdout).toContain('services        2 (2 managed)');
  });
});
