import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FakeBrowser } from '../support/fake-browser.ts';
import { freePort } from '../support/free-port.ts';
import { startGateway, type TestGateway } from '../support/gateway-process.ts';
import { pixelPng, sampleLogo } from '../support/sample-branding.ts';
import { createTestHub, type TestHub, until } from '../support/test-hub.ts';

const siteBranding = {
  logo: 'look/logo',
  favicon: 'look/icon',
  login_message: 'Use your <b>university</b> account.\nSee https://help.example.org/.',
  footer_text: { en: 'Example University', de: 'Beispieluniversität' },
  footer_links: [{ title: { en: 'Imprint', de: 'Impressum' }, url: 'https://example.org/imprint' }],
  terms_url: { en: '/terms', de: '/bedingungen' },
  custom_css: 'look/style.css',
  templates_dir: 'look/parts',
};

let hub: TestHub;
let gateway: TestGateway;
let addresses: Record<string, unknown>;

const configOf = (branding: Record<string, unknown>) => ({ Hub: { ...addresses, ...branding } });
const page = async (path: string, browser = new FakeBrowser()) =>
  (await browser.open(`${hub.url}${path}`)).body;
const write = (path: string, content: string | Buffer) =>
  writeFile(join(hub.directory, 'look', path), content);

/** What pages link to as logo, icon and stylesheet. */
function addressOf(markup: string, kind: 'logo' | 'favicon' | 'style'): string {
  const found = new RegExp(`"(/hub/static/own-${kind}\\.[^"]+)"`).exec(markup);
  return new URL(found?.[1] ?? '/nothing-linked', hub.url).href;
}

beforeAll(async () => {
  // The gateway listens there, and passes on what is for the hub.
  addresses = {
    public_url: `http://127.0.0.1:${await freePort()}/`,
    environment_prefixes: ['HUB', 'JUPYTERHUB'],
  };
  hub = await createTestHub(configOf({}));
  await mkdir(join(hub.directory, 'look', 'parts'), { recursive: true });
  gateway = await startGateway(hub);
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await hub?.[Symbol.asyncDispose]();
});

test('pages and stylesheets are sent compressed', async () => {
  const headers = { 'accept-encoding': 'br', 'sec-fetch-site': 'none' };
  const login = await page('hub/login');
  const [stylesheet = ''] = /\/hub\/static\/site\.[^"]+/.exec(login) ?? [];
  for (const path of ['/hub/login', stylesheet]) {
    const answer = await new FakeBrowser().request(new URL(path, hub.url).href, { headers });
    expect(answer.headers['content-encoding'], path).toBe('br');
  }
});

test('a hub without a look of its own has an icon at the address that browsers ask', async () => {
  for (const path of ['favicon.ico', 'hub/static/favicon.svg']) {
    const answer = await fetch(`${hub.url}${path}`);
    expect(answer.status, path).toBe(200);
    expect(answer.headers.get('content-type'), path).toBe('image/svg+xml');
    expect(answer.headers.get('content-security-policy'), path).toContain('sandbox');
  }
  expect((await fetch(`${hub.url}favicon.ico`, { method: 'HEAD' })).status).toBe(200);
  expect(await page('hub/login')).not.toContain('<footer');
});

describe('a look of its own, which a reload brings,', () => {
  beforeAll(async () => {
    await write('logo', sampleLogo({ width: 240, height: 60 }));
    await write('icon', pixelPng);
    await write('style.css', '.brand { letter-spacing: 0.1em }');
    await write('parts/login-intro.html', '<p class="big">Welcome to {{hub_title}}</p>');
    await write('parts/login-intro.de.html', '<p class="big">Willkommen bei {{hub_title}}</p>');
    await write('parts/home-intro.html', '<p>Hello {{user_name}}, <a href="/docs">read on</a></p>');
    await write(
      'parts/error-help.html',
      '<p><a href="mailto:help@example.org?subject={{error_status}}%20{{request_id}}">Help</a></p>',
    );
    await hub.reload(configOf(siteBranding));
  });

  test('is on the login page, with the texts as they are', async () => {
    const login = await page('hub/login');
    for (const text of [
      'Use your &lt;b&gt;university&lt;/b&gt; account.\nSee <a href="https://help.example.org/"',
      '<p class="big">Welcome to Hub</p>',
      'By logging in you accept the <a href="/terms">terms of use</a>',
      'Example University',
      '<a href="https://example.org/imprint">Imprint</a>',
    ]) {
      expect(login).toContain(text);
    }
    expect(login).toContain('alt="Hub" width="240" height="60"');
    expect(hub.logLines.filter(({ msg }) => String(msg).includes('need a restart'))).toEqual([]);
  });

  test('is in the language of its reader where the operator wrote it in that', async () => {
    const inGerman = { headers: { 'accept-language': 'de', accept: 'text/html' } };
    const read = async (path: string) =>
      (await new FakeBrowser().request(`${hub.url}${path}`, inGerman)).body;
    const login = await read('hub/login');
    for (const text of [
      '<p class="big">Willkommen bei Hub</p>',
      '<a href="/bedingungen">',
      'Beispieluniversität',
      '<a href="https://example.org/imprint">Impressum</a>',
    ]) {
      expect(login).toContain(text);
    }
    expect(login).not.toMatch(/Welcome to|Example University|Imprint</);
    // The gateway itself answers this one.
    await until(async () => (await read('hub/%zz')).includes('Beispieluniversität'), 'it knows');
  });

  test('sends its files under addresses that name their content, and lets none of them act', async () => {
    const login = await page('hub/login');
    const logo = await fetch(addressOf(login, 'logo'));
    expect(logo.headers.get('content-type')).toBe('image/svg+xml');
    expect(logo.headers.get('x-content-type-options')).toBe('nosniff');
    expect(logo.headers.get('cache-control')).toContain('immutable');
    expect(logo.headers.get('content-security-policy')).toMatch(/^default-src 'none';.*sandbox$/);
    expect(await logo.text()).toBe(sampleLogo({ width: 240, height: 60 }));
    const style = await fetch(addressOf(login, 'style'));
    expect(style.headers.get('content-type')).toBe('text/css; charset=utf-8');
    expect(login.indexOf('own-style')).toBeGreaterThan(login.indexOf('site.'));
    for (const url of [addressOf(login, 'favicon'), `${hub.url}favicon.ico`]) {
      const icon = await fetch(url);
      expect(icon.headers.get('content-type')).toBe('image/png');
      expect(Buffer.from(await icon.arrayBuffer()).equals(pixelPng)).toBe(true);
    }
    const forJupyter = await fetch(`${hub.url}hub/logo`, { redirect: 'manual' });
    expect(new URL(forJupyter.headers.get('location') ?? '', hub.url).href).toBe(
      addressOf(login, 'logo'),
    );
  });

  test('escapes what it says of users', async () => {
    const name = 'o<b>malley';
    const browser = await hub.logIn(name);
    const home = await page('hub/home', browser);
    expect(home).toContain('<p>Hello o&lt;b&gt;malley, <a href="/docs">read on</a></p>');
  });

  test('is on error pages, of the hub and of a gateway', async () => {
    const answer = await new FakeBrowser().request(`${hub.url}hub/nowhere`);
    const id = String(answer.headers['x-request-id']);
    expect(answer.body).toContain(`mailto:help@example.org?subject=404%20${id}"`);
    // The gateway itself refuses it, and the hub never sees it.
    const refused = async () =>
      (await new FakeBrowser().request(`${hub.url}hub/%zz`, { headers: { accept: 'text/html' } }))
        .body;
    await until(async () => (await refused()).includes('Example University'), 'the gateway knows');
    expect(addressOf(await refused(), 'logo')).toBe(addressOf(await page('hub/login'), 'logo'));
  });

  test('gets another logo by a reload, and the address of the old one goes on to answer', async () => {
    const old = addressOf(await page('hub/login'), 'logo');
    await write('logo', sampleLogo({ width: 50, height: 60 }));
    await hub.reload(configOf(siteBranding));
    const login = await page('hub/login');
    expect(addressOf(login, 'logo')).not.toBe(old);
    // It is not so wide that it had the title in it.
    expect(login).toContain('alt="" width="50" height="60"');
    const answer = await fetch(old);
    expect(answer.headers.get('cache-control')).toBe('no-cache');
    expect(await answer.text()).toBe(sampleLogo({ width: 50, height: 60 }));
  });

  test('is the built-in one wherever its files are of no use, and the log says why', async () => {
    await write('logo', 'no image');
    await rm(join(hub.directory, 'look', 'style.css'));
    await write('parts/login-intro.html', '<p>Hi</p>\n<script>alert(1)</script>');
    await write('parts/footer.html', '<p>{{hub_titel}}</p>');
    await hub.reload(configOf(siteBranding));
    const login = await page('hub/login');
    expect(login).toContain('<svg');
    expect(login).not.toContain('own-logo');
    expect(login).not.toContain('own-style');
    expect(login).not.toContain('<p>Hi</p>');
    expect(login).toContain('Example University');
    const warned = hub.logLines
      .filter(({ level, setting }) => level === 40 && String(setting).startsWith('Hub.'))
      .map(({ setting, msg }) => `${String(setting)}: ${String(msg)}`);
    expect(warned).toEqual([
      expect.stringMatching(/^Hub\.logo: .*look\/logo is not an image/),
      expect.stringMatching(/^Hub\.custom_css: .*look\/style\.css cannot be read/),
      expect.stringMatching(/^Hub\.templates_dir: .*footer\.html, line 1: \{\{hub_titel\}\} is no/),
      expect.stringMatching(/^Hub\.templates_dir: .*login-intro\.html, line 2: <script> cannot/),
    ]);
    await rm(join(hub.directory, 'look', 'parts', 'footer.html'));
  });

  test('may draw the whole login page around the form', async () => {
    await write('parts/login.html', '<div class="ours"><h2>Ours</h2>{{login_form}}</div>');
    await hub.reload(configOf(siteBranding));
    expect(await page('hub/login')).toMatch(
      /<div class="ours"><h2>Ours<\/h2><div class="panel">[\s\S]*<form[\s\S]*<\/div><\/div>/,
    );
    await hub.logIn('alice');
  });

  test('has its title and its colour on the next page, of a gateway too', async () => {
    const styleOf = async (markup: string) => {
      const path = /href="(\/hub\/static\/site\.[^"]+)"/.exec(markup)?.[1] ?? '/no-stylesheet';
      return (await fetch(new URL(path, hub.url))).text();
    };
    const old = await styleOf(await page('hub/login'));
    await hub.reload(configOf({ ...siteBranding, title: 'Physics Lab', accent_color: '#7a1f5c' }));
    const login = await page('hub/login');
    expect(login).toContain('Physics Lab</title>');
    const style = await styleOf(login);
    expect(style).toContain('#7a1f5c');
    expect(old).not.toContain('#7a1f5c');
    await until(async () => (await page('hub/%zz')).includes('Physics Lab</title>'), 'it knows');
    expect(await styleOf(await page('hub/%zz'))).toBe(style);
    expect(hub.logLines.filter(({ msg }) => String(msg).includes('need a restart'))).toEqual([]);
  });

  test('has its title in the language of each reader, of a gateway too', async () => {
    const title = { en: 'Physics & Lab', de: 'Physik & Labor' };
    await write(
      'parts/footer.html',
      '<a href="https://help.example.org/?about={{hub_title}}">{{hub_title}}</a>',
    );
    await hub.reload(configOf({ ...siteBranding, title, language: 'de' }));
    const titleFor = async (path: string, language: string) => {
      const headers = { accept: 'text/html', 'accept-language': language };
      const { body } = await new FakeBrowser().request(`${hub.url}${path}`, { headers });
      return [/· ([^<·]+)<\/title>/.exec(body)?.[1], /about=([^"]+)">([^<]+)/.exec(body)?.slice(1)];
    };
    const english = ['Physics &amp; Lab', ['Physics%20%26%20Lab', 'Physics &amp; Lab']];
    const german = ['Physik &amp; Labor', ['Physik%20%26%20Labor', 'Physik &amp; Labor']];
    expect(await titleFor('hub/login', 'en')).toEqual(english);
    expect(await titleFor('hub/login', 'de-AT')).toEqual(german);
    await until(async () => (await titleFor('hub/%zz', 'en'))[0] === english[0], 'it knows');
    expect(await titleFor('hub/%zz', 'ja')).toEqual(german);
    await hub.reload(configOf(siteBranding));
    await rm(join(hub.directory, 'look', 'parts', 'footer.html'));
  });

  test('brings languages, which a gateway hears of without their files', async () => {
    await mkdir(join(hub.directory, 'languages'), { recursive: true });
    await writeFile(join(hub.directory, 'languages', 'fr.json'), '{"Error {0}": "Erreur {0}"}');
    await hub.reload(configOf({ languages_dir: 'languages', language: 'fr' }));
    const refused = async (language: string) =>
      (
        await new FakeBrowser().request(`${hub.url}hub/%zz`, {
          headers: { accept: 'text/html', 'accept-language': language },
        })
      ).body;
    await until(async () => (await refused('it')).includes('<html lang="fr"'), 'it reads French');
    expect(await refused('fr')).toContain('Erreur 400');
    expect(await refused('de')).toContain('<html lang="de"');
    await hub.reload(configOf({}));
    await until(async () => (await refused('fr')).includes('<html lang="en"'), 'it forgot French');
  });

  test('goes with the settings', async () => {
    await hub.reload(configOf({}));
    const login = await page('hub/login');
    expect(login).not.toContain('<footer');
    expect(login).not.toContain('own-');
    expect((await fetch(`${hub.url}favicon.ico`)).headers.get('content-type')).toBe(
      'image/svg+xml',
    );
  });
});
