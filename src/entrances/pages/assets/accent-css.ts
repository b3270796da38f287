import {
  contrastRatio,
  formatHexColour,
  fromOklch,
  parseHexColour,
  type Rgb,
  toOklch,
} from './colour.ts';

/** The accent when the operator sets none. */
export const defaultAccentColour = '#0c6a6b';

/**
 * Writes the style rules of an accent colour for light and dark, whatever colour it is: buttons keep
 * the operator's colour where they can, and text on them and links always reach AA contrast.
 */
export function accentCss(accentColour: string = defaultAccentColour): string {
  const accent = parseHexColour(accentColour);
  const light = coloursOf(accent, lightScheme);
  const dark = coloursOf(accent, darkScheme);
  const declarations = accentProperties.map(
    (name) => `--${name}:light-dark(${light[name]},${dark[name]})`,
  );
  return `:root{${declarations.join(';')}}\n`;
}

const accentProperties = ['accent', 'accent-hover', 'on-accent', 'accent-text'] as const;

interface Scheme {
  /** The surface on which the accent has the least contrast in this scheme. */
  readonly surface: Rgb;
  /** Which way to go for more contrast. */
  readonly direction: 1 | -1;
}

/** The worst surfaces of `styles/tokens.css`; its test holds both to the same values. */
const lightScheme: Scheme = { surface: parseHexColour('#f1eee9'), direction: -1 };
const darkScheme: Scheme = { surface: parseHexColour('#292724'), direction: 1 };

const white: Rgb = [1, 1, 1];
const black: Rgb = [0, 0, 0];

function coloursOf(
  accent: Rgb,
  { surface, direction }: Scheme,
): Record<(typeof accentProperties)[number], string> {
  const fill = reachContrast(accent, surface, 3.05, direction);
  const onFill = contrastRatio(fill, white) >= 4.5 ? white : black;
  // Away from the text on it, so that hovering never costs contrast.
  const hover = shift(fill, onFill === white ? -0.05 : 0.05);
  return {
    accent: formatHexColour(fill),
    'accent-hover': formatHexColour(hover),
    'on-accent': formatHexColour(onFill),
    'accent-text': formatHexColour(reachContrast(accent, surface, 4.8, direction)),
  };
}

function reachContrast(colour: Rgb, surface: Rgb, ratio: number, direction: 1 | -1): Rgb {
  let reached = colour;
  for (let step = 0; step < 100 && contrastRatio(reached, surface) < ratio; step += 1) {
    reached = shift(reached, direction * 0.01);
  }
  return reached;
}

function shift(colour: Rgb, lightnessChange: number): Rgb {
  const { lightness, chroma, hue } = toOklch(colour);
  return fromOklch({
    lightness: Math.min(1, Math.max(0, lightness + lightnessChange)),
    chroma,
    hue,
  });
}
