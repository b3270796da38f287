import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pixelPng, sampleLogo } from '../../../test/support/sample-branding.ts';
import { readBranding } from './read-branding.ts';
import { findStylesheetProblems } from './stylesheet.ts';

type Settings = Parameters<typeof readBranding>[0]['Hub'];

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hub-look-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const read = (settings: Partial<Settings>) =>
  readBranding({
    directory,
    Hub: {
      title: 'Hub',
      accent_color: undefined,
      logo: undefined,
      logo_dark: undefined,
      favicon: undefined,
      login_message: undefined,
      footer_text: undefined,
      footer_links: [],
      terms_url: undefined,
      custom_css: undefined,
      templates_dir: undefined,
      ...settings,
    },
  });

async function warningsOf(settings: Partial<Settings>): Promise<string[]> {
  const { warnings } = await read(settings);
  return warnings.map(({ path, message }) => `${path}: ${message.replaceAll(directory, '')}`);
}

describe('images', () => {
  test('are what they hold, whatever they are called', async () => {
    await writeFile(join(directory, 'logo.jpg'), sampleLogo({ width: 240, height: 60 }));
    await writeFile(join(directory, 'icon.txt'), pixelPng);
    const { own, warnings } = await read({ logo: 'logo.jpg', favicon: 'icon.txt' });
    expect(warnings).toEqual([]);
    expect(own.branding.logo).toMatchObject({ width: 240, height: 60 });
    expect(own.branding.logo?.file).toMatch(/^own-logo\.[0-9a-f]{12}\.svg$/);
    expect(own.files.map(({ contentType }) => contentType)).toEqual(['image/svg+xml', 'image/png']);
  });

  test.for<[string, string | Buffer, string]>([
    ['a text', 'not an image', 'is not an image that browsers show; use SVG, PNG, JPEG or WebP'],
    [
      'a web page with a drawing in it',
      `<!doctype html><p>${sampleLogo({ width: 2, height: 1 })}</p>`,
      'is cut off or damaged',
    ],
    [
      'SVG without a size',
      '<svg xmlns="http://www.w3.org/2000/svg"></svg>',
      'is SVG without a size: give its <svg> a viewBox',
    ],
    [
      'SVG that is cut off',
      sampleLogo({ width: 2, height: 1 }).slice(0, -4),
      'is cut off or damaged',
    ],
    ['PNG that is cut off', pixelPng.subarray(0, 40), 'is cut off or damaged'],
    [
      'a type that not all browsers show',
      Buffer.from(
        '424d460000000000000036000000280000000200000002000000010018000000000010000000130b0000130b00000000000000000000',
        'hex',
      ),
      'is an image of another type (bmp); use SVG, PNG, JPEG or WebP',
    ],
    ['nothing', '', 'is empty'],
    ['50 MB', Buffer.alloc(50 * 1024 * 1024), 'is larger than 1024 KiB'],
  ])('%s is no logo', async ([, content, expected]) => {
    await writeFile(join(directory, 'bad-logo'), content);
    const found = await warningsOf({ logo: 'bad-logo' });
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(`Hub.logo: /bad-logo ${expected}`);
    expect(found[0]).toContain('the built-in mark is shown');
    expect((await read({ logo: 'bad-logo' })).own.branding.logo).toBeUndefined();
  });

  test('nothing is waited for that is no file', async () => {
    await mkdir(join(directory, 'folder'), { recursive: true });
    execFileSync('mkfifo', [join(directory, 'pipe')]);
    expect(await warningsOf({ logo: 'folder' })).toEqual([
      'Hub.logo: /folder is a folder, not a file; the built-in mark is shown',
    ]);
    expect(await warningsOf({ logo: 'pipe' })).toEqual([
      'Hub.logo: /pipe is no regular file; the built-in mark is shown',
    ]);
    expect(await warningsOf({ favicon: 'missing.png' })).toEqual([
      'Hub.favicon: /missing.png cannot be read: there is no such file; the built-in icon is used',
    ]);
  });

  test('a logo for dark mode needs one for light', async () => {
    await writeFile(join(directory, 'dark.svg'), sampleLogo({ width: 2, height: 1 }));
    expect(await warningsOf({ logo_dark: 'dark.svg' })).toEqual([
      'Hub.logo_dark: is only shown with Hub.logo; set that too',
    ]);
  });
});

describe('a stylesheet', () => {
  test('may load what is its own, and says in which line it loads what browsers block', () => {
    const text = [
      '/* url(https://example.org/a.png) { */',
      '@import "/services/fonts/fonts.css";',
      '@import url("https://fonts.example.org/css");',
      'p { content: "}"; background: url(//cdn.example.org/b.png) }',
      'a { background: url(data:image/png;base64,AAAA) }',
      '}',
      'b {',
    ].join('\n');
    expect(findStylesheetProblems(text).map(({ line, message }) => `${line} ${message}`)).toEqual([
      expect.stringContaining('3 @import of https://fonts.example.org/css is blocked by browsers'),
      expect.stringContaining('4 url() of //cdn.example.org/b.png is blocked by browsers'),
      '6 this } closes nothing; remove it',
      '7 this { is never closed; add a }',
    ]);
    expect(findStylesheetProblems('a {}\n/* and so on')).toEqual([
      { line: 2, message: 'this comment is never closed; end it with */' },
    ]);
  });

  test.for<[string, string | Buffer, string]>([
    ['5 MB', Buffer.alloc(5 * 1024 * 1024, 'a{}'), 'is larger than 256 KiB'],
    ['a web page', '<style>a{}</style>', 'is not a stylesheet in UTF-8'],
    ['no text', Buffer.from([0xff, 0xfe, 0x00]), 'is not a stylesheet in UTF-8'],
  ])('of %s is left out', async ([, content, expected]) => {
    await writeFile(join(directory, 'bad.css'), content);
    expect(await warningsOf({ custom_css: 'bad.css' })).toEqual([
      `Hub.custom_css: /bad.css ${expected}; it is left out`,
    ]);
    expect((await read({ custom_css: 'bad.css' })).own.branding.stylesheet).toBeUndefined();
  });
});

describe('the folder of templates', () => {
  test('gives the parts that are sound, and says what is wrong with the others', async () => {
    const folder = join(directory, 'parts');
    await mkdir(folder);
    await writeFile(join(folder, 'README.md'), 'Ours.');
    await writeFile(join(folder, 'footer.html'), '<p>Ours</p>');
    await writeFile(join(folder, 'home-intro.html'), '<p>\n{{nam}}');
    await writeFile(join(folder, 'login-intro.html'), Buffer.alloc(70 * 1024, 'a'));
    await writeFile(join(folder, 'error-help.html'), Buffer.from([0xff]));
    await writeFile(join(folder, 'foter.html'), '<p>Ours</p>');
    await writeFile(join(folder, 'footer.de.html'), '<p>Unsere</p>');
    await writeFile(join(folder, 'footer.pt-br.html'), '<p>Nossa</p>');
    await writeFile(join(folder, 'footer.fr.html'), '<p>\n<b>Notre');
    await writeFile(join(folder, 'footer.german_.html'), '<p>Ours</p>');
    await mkdir(join(folder, 'login.html'));
    const { own } = await read({ templates_dir: 'parts' });
    expect(own.branding.templates).toEqual({ footer: ['<p>Ours</p>'] });
    expect(own.branding.templatesIn).toEqual({
      de: { footer: ['<p>Unsere</p>'] },
      'pt-BR': { footer: ['<p>Nossa</p>'] },
    });
    const still = 'the built-in part is used until it is fixed';
    expect(await warningsOf({ templates_dir: 'parts' })).toEqual([
      `Hub.templates_dir: /parts/error-help.html is not text in UTF-8; ${still}`,
      'Hub.templates_dir: /parts/footer.fr.html, line 1: <p> is never closed; add </p>; the part for all languages is used until it is fixed',
      expect.stringContaining('/parts/footer.fr.html, line 2: <b> is never closed'),
      'Hub.templates_dir: /parts/footer.german_.html is for no language: call it footer.html, or footer.de.html for German',
      'Hub.templates_dir: /parts/foter.html is no part of a page; there are login.html, login-intro.html, home-intro.html, error-help.html, footer.html; did you mean `footer`?',
      expect.stringContaining('/parts/home-intro.html, line 1: <p> is never closed; add </p>'),
      expect.stringContaining('/parts/home-intro.html, line 2: {{nam}} is no placeholder here'),
      `Hub.templates_dir: /parts/login-intro.html is larger than 64 KiB; ${still}`,
      `Hub.templates_dir: /parts/login.html is a folder, not a file; ${still}`,
    ]);
  });

  test('that is not there leaves all as it is', async () => {
    expect(await warningsOf({ templates_dir: 'nowhere' })).toEqual([
      'Hub.templates_dir: /nowhere cannot be read: there is no such file; the built-in parts are used',
    ]);
  });
});

test('two hubs with the same content in other places have the same look', async () => {
  await writeFile(join(directory, 'one.svg'), sampleLogo({ width: 5, height: 4 }));
  await writeFile(join(directory, 'two.svg'), sampleLogo({ width: 5, height: 4 }));
  await writeFile(join(directory, 'three.svg'), sampleLogo({ width: 5, height: 3 }));
  const digest = async (logo: string) => (await read({ logo })).own.digest;
  expect(await digest('two.svg')).toBe(await digest('one.svg'));
  expect(await digest('three.svg')).not.toBe(await digest('one.svg'));
});
