import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { accentCss, defaultAccentColour } from './accent-css.ts';
import { contrastRatio, formatHexColour, fromOklch, parseHexColour, toOklch } from './colour.ts';

/** The colours of the light and the dark scheme in a stylesheet. */
function schemesOf(css: string): Record<'light' | 'dark', Map<string, string>> {
  const pattern = /--([a-z-]+): ?light-dark\((#[0-9a-f]{6}), ?(#[0-9a-f]{6})\)/g;
  const found = [...css.matchAll(pattern)];
  const scheme = (group: 2 | 3) =>
    new Map(found.map((match): [string, string] => [match[1] ?? '', match[group] ?? '']));
  return { light: scheme(2), dark: scheme(3) };
}

const tokens = schemesOf(readFileSync(join(import.meta.dirname, 'styles', 'tokens.css'), 'utf8'));
const surfaces = ['bg', 'surface', 'sunken'];

describe.each(['light', 'dark'] as const)('the colours of the %s scheme', (scheme) => {
  const ratio = (one: string, other: string, more: Map<string, string> = new Map()): number => {
    const find = (name: string) =>
      parseHexColour(more.get(name) ?? tokens[scheme].get(name) ?? name);
    return contrastRatio(find(one), find(other));
  };

  test.for(['ink', 'ink-soft'])('%s is readable on every surface', (ink) => {
    for (const surface of surfaces)
      expect(ratio(ink, surface), surface).toBeGreaterThanOrEqual(4.5);
  });

  test.for(['good', 'warn', 'bad'])('%s is readable on every surface and its own tint', (ink) => {
    for (const surface of [...surfaces, `${ink}-soft`]) {
      expect(ratio(ink, surface), surface).toBeGreaterThanOrEqual(4.5);
    }
    expect(ratio('ink', `${ink}-soft`)).toBeGreaterThanOrEqual(7);
  });

  test('the outline of a field stands out from what is around it', () => {
    for (const surface of ['bg', 'surface']) {
      expect(ratio('line-strong', surface), surface).toBeGreaterThanOrEqual(3);
    }
  });

  test('a dangerous button is readable', () => {
    expect(ratio('surface', 'bad')).toBeGreaterThanOrEqual(4.5);
  });

  test.for([
    defaultAccentColour,
    '#2457d6',
    '#ffcc00',
    '#ffffff',
    '#000000',
    '#7f7f7f',
    '#767676',
    '#e11d48',
    '#00ff00',
    '#0000ff',
    '#8a2be2',
    '#777777',
    '#ff7a59',
    '#123456',
  ])('the accent %s gives readable buttons and links', (accent) => {
    const accents = schemesOf(accentCss(accent))[scheme];
    expect(ratio('on-accent', 'accent', accents)).toBeGreaterThanOrEqual(4.5);
    expect(ratio('on-accent', 'accent-hover', accents)).toBeGreaterThanOrEqual(4.5);
    for (const surface of surfaces) {
      expect(ratio('accent-text', surface, accents), surface).toBeGreaterThanOrEqual(4.5);
      expect(ratio('accent', surface, accents), surface).toBeGreaterThanOrEqual(3);
    }
  });
});

describe('accentCss', () => {
  test("keeps the operator's colour where it can be seen", () => {
    expect(accentCss('#2457d6')).toContain(':root{--accent:light-dark(#2457d6,');
  });

  test('writes nothing but colours, whatever it is given', () => {
    expect(() => accentCss('red;}body{display:none')).toThrow(RangeError);
    expect(accentCss()).toMatch(/^[\s:a-z0-9(){};,#-]+$/);
  });
});

describe('colour', () => {
  test.for(['#000000', '#ffffff', '#2457d6', '#ffcc00', '#12ab9f'])('%s survives OKLCH', (text) => {
    expect(formatHexColour(fromOklch(toOklch(parseHexColour(text))))).toBe(text);
  });

  test('black on white has the greatest contrast', () => {
    expect(contrastRatio([0, 0, 0], [1, 1, 1])).toBeCloseTo(21, 5);
  });
});
