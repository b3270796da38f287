import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { accentCss } from './accent-css.ts';

/** Everything a page can link to. */
export type AssetName =
  | 'site.css'
  | 'favicon.svg'
  | 'auto-start.js'
  | 'copy-button.js'
  | 'live-output.js'
  | 'live-state.js'
  | 'passkey.js'
  | 'password-toggle.js'
  | 'progress.js'
  | 'retry.js'
  | 'server-sent-events.js';

/** One asset as it is sent. */
export interface Asset {
  readonly body: Buffer;
  readonly contentType: string;
  readonly etag: string;
  /** For ever where the address names this very content, else only after asking again. */
  readonly cacheControl: string;
}

/** What a page needs to know of the assets. */
export interface AssetUrls {
  url(name: AssetName): string;
}

/** The assets, held in memory and addressed by their content. */
export interface Assets extends AssetUrls {
  /** The asset at the path of a request, also at an address of an older content. */
  find(path: string): Asset | undefined;
}

const contentTypes: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const files = [
  'favicon.svg',
  'auto-start.js',
  'copy-button.js',
  'live-output.js',
  'live-state.js',
  'passkey.js',
  'password-toggle.js',
  'progress.js',
  'retry.js',
  'server-sent-events.js',
] as const;

const styles = [
  'tokens',
  'base',
  'layout',
  'controls',
  'choices',
  'content',
  'cards',
  'output',
  'tables',
  'plots',
  'pages',
] as const;

/**
 * Reads the assets and gives each an address that changes with its content. The one stylesheet is
 * joined from its parts and the rules of the accent colour.
 */
export async function loadAssets(options: {
  /** Path under which they are served, such as `/hub/static/`. */
  readonly staticUrl: string;
  readonly accentColour?: string | undefined;
}): Promise<Assets> {
  const bodies = new Map<AssetName, Buffer>();
  for (const name of files) bodies.set(name, await readFile(join(import.meta.dirname, name)));
  bodies.set('site.css', await readStylesheet(options.accentColour));

  const urls = new Map<AssetName, string>();
  const byFileName = new Map<string, Asset>();
  for (const [name, body] of bodies) {
    const digest = hash('sha256', body, 'hex').slice(0, 12);
    const extension = extname(name);
    const fileName = `${name.slice(0, -extension.length)}.${digest}${extension}`;
    const asset = { body, contentType: contentTypes[extension] ?? '', etag: `"${digest}"` };
    urls.set(name, options.staticUrl + fileName);
    byFileName.set(fileName, { ...asset, cacheControl: 'public, max-age=31536000, immutable' });
    byFileName.set(name, { ...asset, cacheControl: 'no-cache' });
  }

  return {
    url: (name) => urls.get(name) ?? options.staticUrl + name,
    find(path) {
      if (!path.startsWith(options.staticUrl)) return undefined;
      const fileName = path.slice(options.staticUrl.length);
      return byFileName.get(fileName) ?? byFileName.get(fileName.replace(/\.[0-9a-f]{12}\./, '.'));
    },
  };
}

async function readStylesheet(accentColour: string | undefined): Promise<Buffer> {
  const parts = await Promise.all(
    styles.map((name) => readFile(join(import.meta.dirname, 'styles', `${name}.css`), 'utf8')),
  );
  return Buffer.from([...parts, accentCss(accentColour)].join('\n'));
}
