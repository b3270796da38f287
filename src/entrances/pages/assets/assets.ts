import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { CustomFile, CustomFileName } from '../../../platform/branding/branding.ts';
import { programFolder } from '../../../platform/files/program-folder.ts';
import { accentCss } from './accent-css.ts';

const folder = join(programFolder, 'src', 'entrances', 'pages', 'assets');

/** Everything a page can link to. */
export type AssetName =
  | 'site.css'
  | 'favicon.svg'
  | 'auto-start.js'
  | 'complete-names.js'
  | 'copy-button.js'
  | 'countdown.js'
  | 'live-output.js'
  | 'live-state.js'
  | 'palette.js'
  | 'passkey.js'
  | 'password-toggle.js'
  | 'progress.js'
  | 'read-file.js'
  | 'retry.js'
  | 'server-sent-events.js'
  | 'several-words.js';

/** One asset as it is sent. */
export interface Asset {
  readonly body: Buffer;
  readonly contentType: string;
  readonly etag: string;
  /** For ever where the address names this very content, else only after asking again. */
  readonly cacheControl: string;
  /** For what could hold scripts: opened by itself, it runs none. */
  readonly contentSecurityPolicy?: string;
}

/** What a page needs to know of the assets. */
export interface AssetUrls {
  url(name: AssetName | CustomFileName): string;
}

/** The assets, held in memory and addressed by their content. */
export interface Assets extends AssetUrls {
  /** The asset at the path of a request, also at an address of an older content. */
  find(path: string): Asset | undefined;
  /** Gives primary buttons and links a colour, the built-in one for undefined. */
  setAccentColour(colour: string | undefined): void;
  /** Puts the operator's own files in place of those before. */
  setCustomFiles(files: readonly CustomFile[]): void;
}

/** Of an image that was opened as a page: neither scripts nor anything else from elsewhere. */
const imagePolicy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; sandbox";

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const files = [
  'favicon.svg',
  'auto-start.js',
  'complete-names.js',
  'copy-button.js',
  'countdown.js',
  'live-output.js',
  'live-state.js',
  'palette.js',
  'passkey.js',
  'password-toggle.js',
  'progress.js',
  'read-file.js',
  'retry.js',
  'server-sent-events.js',
  'several-words.js',
] as const;

const styles = [
  'tokens',
  'base',
  'layout',
  'own-look',
  'controls',
  'choices',
  'content',
  'cards',
  'output',
  'tables',
  'plots',
  'pages',
  'admin',
] as const;

/**
 * Reads the assets and gives each an address that changes with its content. The one stylesheet is
 * joined from its parts and the rules of the accent colour.
 */
export async function loadAssets(options: {
  /** Path under which they are served, such as `/hub/static/`. */
  readonly staticUrl: string;
}): Promise<Assets> {
  shipped ??= readShipped();
  const { bodies, stylesheet } = await shipped;
  const urls = new Map<string, string>();
  const byFileName = new Map<string, Asset>();

  function put(name: AssetName, body: Buffer): void {
    const digest = hash('sha256', body, 'hex').slice(0, 12);
    const extension = extname(name);
    const fileName = `${name.slice(0, -extension.length)}.${digest}${extension}`;
    urls.set(name, options.staticUrl + fileName);
    addAsset(byFileName, { fileName, digest, body, contentType: contentTypes[extension] ?? '' });
  }
  for (const [name, body] of bodies) put(name, body);

  function setAccentColour(colour: string | undefined): void {
    const former = urls.get('site.css');
    if (former !== undefined) byFileName.delete(former.slice(options.staticUrl.length));
    put('site.css', Buffer.from(stylesheet + withoutLayout(accentCss(colour))));
  }
  setAccentColour(undefined);
  let customByFileName: ReadonlyMap<string, Asset> = new Map();

  return {
    url: (name) => urls.get(name) ?? options.staticUrl + name,
    find(path) {
      if (!path.startsWith(options.staticUrl)) return undefined;
      const fileName = path.slice(options.staticUrl.length);
      return findIn(byFileName, fileName) ?? findIn(customByFileName, fileName);
    },
    setAccentColour,
    setCustomFiles(files) {
      const own = new Map<string, Asset>();
      for (const { name: fileName, body, contentType } of files) {
        const [, digest = ''] = fileName.split('.');
        addAsset(own, { fileName, digest, body, contentType });
      }
      customByFileName = own;
    },
  };
}

const digestInName = /\.[0-9a-f]{12}\./;

function findIn(assets: ReadonlyMap<string, Asset>, fileName: string): Asset | undefined {
  return assets.get(fileName) ?? assets.get(fileName.replace(digestInName, '.'));
}

function addAsset(
  assets: Map<string, Asset>,
  file: {
    /** With the digest of its content. */
    readonly fileName: string;
    readonly digest: string;
    readonly body: Buffer;
    readonly contentType: string;
  },
): void {
  const { fileName, digest, body, contentType } = file;
  const asset = {
    body,
    contentType,
    etag: `"${digest}"`,
    ...(contentType === contentTypes['.svg'] && { contentSecurityPolicy: imagePolicy }),
  };
  assets.set(fileName, { ...asset, cacheControl: 'public, max-age=31536000, immutable' });
  assets.set(fileName.replace(digestInName, '.'), { ...asset, cacheControl: 'no-cache' });
}

/** Of the program, without what is for the reader of its source: read once for all hubs of a process. */
let shipped: ReturnType<typeof readShipped> | undefined;

async function readShipped() {
  const bodies = new Map<AssetName, Buffer>();
  for (const name of files) bodies.set(name, await readBody(name));
  return { bodies, stylesheet: withoutLayout(`${await readStylesheet()}\n`) };
}

async function readBody(name: (typeof files)[number]): Promise<Buffer> {
  const body = await readFile(join(folder, name));
  if (!name.endsWith('.js')) return body;
  return Buffer.from(body.toString().replaceAll(/^\s*(?:\/\/.*\n\s*)*/gm, ''));
}

async function readStylesheet(): Promise<string> {
  const parts = await Promise.all(
    styles.map((name) => readFile(join(folder, 'styles', `${name}.css`), 'utf8')),
  );
  return parts.join('\n');
}

/** Leaves out what is for the reader of the source, as for scripts: lines of comment, indentation, and spaces between signs. */
function withoutLayout(stylesheet: string): string {
  return stylesheet
    .replaceAll(/^[ \t]*\/\*[\s\S]*?\*\/[ \t]*$/gm, '')
    .replaceAll(/^\s+/gm, '')
    .replaceAll(/([{};,])\n/g, '$1')
    .replaceAll(', ', ',')
    .replaceAll(/([\s:,(-])0\./g, '$1.')
    .replaceAll(/([{;][\w-]+): /g, '$1:')
    .replaceAll(' {', '{')
    .replaceAll(' > ', '>')
    .replaceAll(/ ([+~]) (?=\.[a-z])/g, '$1')
    .replaceAll(/="([a-z-]+)"\]/g, '=$1]')
    .replaceAll(';}', '}');
}
