import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectDirectory } from './services.ts';

/** The blocks of a language on a page, as its reader copies them. Throws where there is none. */
export function documentedBlocks(page: string, language: string): readonly string[] {
  const text = readFileSync(join(projectDirectory, page), 'utf8');
  const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)].flatMap(([, name, block = '']) =>
    name === language ? [block] : [],
  );
  if (blocks.length === 0) throw new Error(`${page} has no block of ${language}`);
  return blocks;
}

/** The first of them. */
export function documentedBlock(page: string, language: string): string {
  return documentedBlocks(page, language)[0] ?? '';
}

/** A server of nginx as documented, on a loopback port and without TLS. */
export function withoutTls(block: string, port: number): string {
  return block
    .replaceAll(/listen 443 ssl\b/g, `listen 127.0.0.1:${port}`)
    .replaceAll(/^ *ssl_.*;\n/gm, '');
}
