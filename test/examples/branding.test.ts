import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadCheckedConfig } from '../../src/entrances/cli/checked-config.ts';
import { templatePlaceholders } from '../../src/platform/branding/template.ts';
import { describeProblem } from '../../src/platform/errors.ts';
import { sampleLogo } from '../support/sample-branding.ts';

const page = readFileSync(
  join(import.meta.dirname, '..', '..', 'docs', 'how-to', 'give-it-your-look.md'),
  'utf8',
);

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hub-look-'));
  // Each example names its file in its first line.
  const examples = page.matchAll(
    /^```(?:jsonc|css|html)\n(?:\/\/|\/\*|<!--) (\S+).*\n([\s\S]*?)^```$/gm,
  );
  for (const [, name = '', text = ''] of examples) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), text);
  }
  for (const name of ['logo', 'logo-dark', 'favicon'])
    await writeFile(join(directory, 'look', `${name}.svg`), sampleLogo({ width: 90, height: 30 }));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

const check = () =>
  loadCheckedConfig({ file: join(directory, 'hub.config.json'), env: {}, directory });

test('the look of docs/how-to/give-it-your-look.md works as it stands there', async () => {
  const { branding, warnings } = await check();
  expect(warnings.filter(({ path }) => path.startsWith('Hub.'))).toEqual([]);
  const { logo, favicon, stylesheet, loginMessage, footerLinks, templates } = branding.branding;
  expect(Object.keys(templates).toSorted()).toEqual(['error-help', 'home-intro', 'login']);
  expect(Object.keys(branding.branding.templatesIn['de'] ?? {})).toEqual(['login']);
  expect(branding.branding.footerText).toHaveProperty('de');
  expect([logo?.darkFile, favicon, stylesheet, loginMessage, footerLinks[1]]).not.toContain(
    undefined,
  );
});

test('hub check says of a mistake what the page says', async () => {
  await rm(join(directory, 'look', 'logo.svg'));
  await writeFile(join(directory, 'look', 'parts', 'footer.html'), 'Hi\n<p>you');
  const lines = (await check()).warnings.map(
    (problem) => `warning: ${describeProblem(problem).replaceAll(directory, '/etc/hub')}`,
  );
  const [, promised = ''] = /^\$ hub check\n([\s\S]*?)^```$/m.exec(page) ?? [];
  expect(lines.filter((line) => line.includes(': Hub.'))).toEqual(promised.trim().split('\n'));
});

test('the page names every part and every placeholder', () => {
  for (const [name, placeholders] of Object.entries(templatePlaceholders)) {
    const row = page.split('\n').find((line) => line.startsWith(`| \`${name}.html\` |`));
    expect(row, name).toBeDefined();
    for (const each of placeholders) expect(page, each).toContain(`{{${each}}}`);
  }
});
