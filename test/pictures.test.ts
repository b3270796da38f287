import { globSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createCamera } from '../scripts/pictures/camera.ts';
import { fileOf, type Picture, pictures, themes } from '../scripts/pictures/list.ts';
import { playScenes } from '../scripts/pictures/scenes.ts';
import { startWorld } from '../scripts/pictures/world.ts';
import { hasChromium, startChromium } from './support/chromium.ts';

const root = join(import.meta.dirname, '..');
const folder = join(root, 'docs', 'pictures');
const maxBytes = 2 * 2 ** 20;

/** Width and height of a WebP picture (RFC 9649, section 2). */
function sizeOf(picture: Buffer): readonly [number, number] {
  const [riff, webp, kind] = [0, 8, 12].map((at) => picture.toString('latin1', at, at + 4));
  expect([riff, webp]).toEqual(['RIFF', 'WEBP']);
  if (kind === 'VP8X') return [picture.readUIntLE(24, 3) + 1, picture.readUIntLE(27, 3) + 1];
  expect(kind).toBe('VP8 ');
  return [picture.readUInt16LE(26) & 0x3f_ff, picture.readUInt16LE(28) & 0x3f_ff];
}

describe('the pictures of the documentation', () => {
  const pages = globSync(['README.md', 'docs/**/*.md'], { cwd: root });
  const shown = pages.flatMap((page) =>
    [
      ...readFileSync(join(root, page), 'utf8').matchAll(
        /<picture>\n {2}<source media="\(prefers-color-scheme: dark\)" srcset="([^"]+)">\n {2}<img src="([^"]+)" width="\d+" alt="([^"]+)">\n<\/picture>/g,
      ),
    ].map(([, dark = '', light = '', alt = '']) => ({
      alt,
      files: [light, dark].map((file) => join(root, dirname(page), file)),
    })),
  );

  test('are those that npm run pictures takes, each with what it shows', () => {
    const taken = pictures.map(({ name, alt }) => ({
      alt,
      files: themes.map((theme) => join(folder, fileOf(name, theme))),
    }));
    const byAlt = (list: typeof shown) =>
      list.toSorted((left, right) => (left.alt < right.alt ? -1 : 1));
    expect(byAlt(shown)).toEqual(byAlt(taken));
    const tags = pages.flatMap(
      (page) => readFileSync(join(root, page), 'utf8').match(/<img|<source/g) ?? [],
    );
    expect(tags).toHaveLength(2 * shown.length);
  });

  test('are there, of one size, small, and no others beside them', () => {
    const files = globSync('*.webp', { cwd: folder });
    const expected = pictures.flatMap(({ name }) => themes.map((theme) => fileOf(name, theme)));
    expect(files.toSorted()).toEqual(expected.toSorted());
    let bytes = 0;
    for (const picture of pictures as readonly Picture[]) {
      for (const theme of themes) {
        const data = readFileSync(join(folder, fileOf(picture.name, theme)));
        const [width] = sizeOf(data);
        expect(width, picture.name).toBe(picture.isNarrow === true ? 488 : 1200);
        bytes += data.length;
      }
    }
    expect(bytes).toBeLessThan(maxBytes);
  });

  test.skipIf(!hasChromium())('are taken from a hub that runs', async () => {
    const taken = await mkdtemp(join(tmpdir(), 'hub-test-pictures-'));
    await using world = await startWorld();
    await using browser = await startChromium({ hosts: { 'hub.example.org': world.port } });
    await using camera = createCamera(browser, { folder: taken, language: 'en' });
    await playScenes(world, camera, { last: 'set-up', visitSeconds: 0 });
    expect(globSync('*', { cwd: taken }).toSorted()).toEqual([
      'set-up-dark.webp',
      'set-up-light.webp',
    ]);
    const [dark, light] = await Promise.all(
      themes.toReversed().map((theme) => readFile(join(taken, fileOf('set-up', theme)))),
    );
    expect(sizeOf(dark ?? Buffer.of())).toEqual(sizeOf(light ?? Buffer.of()));
    expect(dark?.equals(light ?? Buffer.of())).toBe(false);
    await rm(taken, { recursive: true });
  });
});
