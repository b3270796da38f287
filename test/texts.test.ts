import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import {
  readSource,
  sourceFiles,
  textsIn,
  textsOfSource,
  untranslatedIn,
} from '../scripts/texts/extract.ts';
import { loadAssets } from '../src/pages/assets/assets.ts';
import { renderHtml } from '../src/pages/html.ts';
import { problemOf } from '../src/texts/catalogue.ts';
import { BracketLanguage, unbracketedIn } from './support/bracket-language.ts';
import { samplePages } from './support/sample-pages.ts';

const german = join(import.meta.dirname, '..', 'src', 'texts', 'languages', 'de');
const files = globSync('*.json', { cwd: german }).map((name) => ({
  name,
  entries: Object.entries<string>(JSON.parse(readFileSync(join(german, name), 'utf8'))),
}));
const texts = textsOfSource();

test('every text has a German translation', () => {
  const translated = new Set(files.flatMap(({ entries }) => entries.map(([key]) => key)));
  expect([...texts.keys()].filter((key) => !translated.has(key))).toEqual([]);
});

test('German translates nothing but what there is, rightly, in one way, and in order', () => {
  const known = new Map<string, string>();
  const problems = files.flatMap(({ name, entries }) =>
    entries.flatMap(([key, translation]) => {
      const before = known.get(key);
      known.set(key, translation);
      if (!texts.has(key)) return `${name}: nothing in the source is called ${key}`;
      if (before !== undefined && before !== translation)
        return `${name}: ${key} is also ${before}`;
      const problem = problemOf(key, translation);
      return problem === undefined ? [] : `${name}: ${key} ${problem}`;
    }),
  );
  expect(problems).toEqual([]);
  for (const { name, entries } of files) {
    const keys = entries.map(([key]) => key);
    expect(keys, name).toEqual([...keys].sort());
  }
});

test('no markup has words that are in no text', () => {
  for (const path of sourceFiles()) {
    expect(untranslatedIn(path, readSource(path)), path).toEqual([]);
  }
});

test('no page has words that are in no text', async () => {
  const assets = await loadAssets({ staticUrl: '/hub/static/' });
  // What the pages are about is the same in every language, and marked like a text.
  const pages = samplePages(assets, (plausible) => `⟦${plausible}⟧`);
  const brackets = new BracketLanguage();
  for (const [name, page] of Object.entries(pages)) {
    // An address may have places to break.
    const shown = renderHtml(page, brackets).replaceAll('<wbr>', '');
    expect(unbracketedIn(shown), name).toEqual([]);
  }
});

test('words outside texts are found where they stand', () => {
  const inTag = '$' + '{url}';
  const code = `html\`<a href="${inTag}" title="Go there">${inTag} see <b>all</b></a>\``;
  expect(untranslatedIn('x.ts', code)).toEqual(['… see', 'all', 'Go there']);
  expect(untranslatedIn('x.ts', `html\` required\`; html\`<p class="a">${inTag}</p>\``)).toEqual(
    [],
  );
  const from = `import { message, text } from '../texts/text.ts';`;
  expect([
    ...textsIn('x.ts', `${from} text\`a \${b} c\`; message('d', {}, { context: 'e' })`),
  ]).toEqual(['a {0} c', 'e::d']);
  expect(() => textsIn('x.ts', `${from} message(b)`)).toThrow('written out');
});
