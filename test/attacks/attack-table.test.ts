import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const rows = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')
  .split('\n')
  .map((line) => /^\| ([SD]?\d+) \| (.*) \| (.*) \|$/.exec(line))
  .filter((match) => match !== null)
  .map(([, number, attack = '', tests = '']) => ({ number, attack, tests }));

test('the tables name all 56 rows once, and what scanners and other proxies found', () => {
  const findings = ['S4', 'S5', 'S6', 'S7', 'S8', 'S9', 'D10', 'D12'];
  expect(rows.map(({ number }) => number)).toEqual([
    ...Array.from({ length: 56 }, (_, index) => String(index + 1)),
    ...findings,
  ]);
});

test.for(rows)('row $number has its tests, or a reason why not', ({ tests }) => {
  const links = [...tests.matchAll(/\[[^\]]*\]\(([^)]*)\) “([^”]*)”/g)];
  if (links.length === 0) expect(tests).toMatch(/^Does not concern the hub: .{40}/);
  for (const [, file = '', title = ''] of links) {
    const text = readFileSync(join(import.meta.dirname, file), 'utf8');
    expect(text.replaceAll("\\'", "'"), `${file} holds “${title}”`).toContain(title);
  }
});
