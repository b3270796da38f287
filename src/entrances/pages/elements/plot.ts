import { type Phrase, text } from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';

/** Figures of equal steps, oldest first; null where there was none. */
type Figures = readonly (number | null)[];

/** A line over time. */
export interface PlotView {
  readonly label: Phrase;
  readonly figures: Figures;
  /** As many as the plot is wide: what is younger begins further right. */
  readonly steps: number;
  /** Writes a figure with its unit. */
  readonly format: (figure: number) => Phrase;
  /** Which time it is over, at its end: `the last hour`. */
  readonly over: Phrase;
  /** Where its axis begins, such as `1 hour ago`. */
  readonly begin: Phrase;
  /** What the figure cannot or should not go beyond. */
  readonly limit?: number | undefined;
}

const height = 100;
/** More would be heavy, and no finer on a screen. */
const maxPoints = 180;

/** A drawn line with its figures as text: now, the most and the average, and the limit. */
export function plot(view: PlotView): Html {
  const { label, figures, steps, format, begin, limit } = view;
  const summary = summarise(figures);
  const ofLimit = limit !== undefined && html` ${text`of ${format(limit)}`}`;
  if (summary === undefined) {
    return html`<figure class="plot"><figcaption>${label} <span class="soft">${text`not measured yet`}</span></figcaption></figure>`;
  }
  const { now, max, mean } = summary;
  const top = roundUp(Math.max(max, limit ?? 0));
  const every = Math.ceil(steps / maxPoints);
  const drawn = { steps: Math.ceil(steps / every), top, limit };
  return html`<figure class="plot">
<figcaption>${label} <b>${now === null ? text`nothing now` : format(now)}</b>${ofLimit} <span class="soft">${text`at most ${format(max)}`}</span></figcaption>
<svg viewBox="0 0 ${drawn.steps - 1} ${height}" preserveAspectRatio="none" role="img"><title>${text`${label}, ${view.over}: ${now === null ? text`nothing measured now` : text`now ${format(now)}`}, at most ${format(max)}, on average ${format(mean)}`}${limit !== undefined && text`, the limit is ${format(limit)}`}</title>${shapes(meansOf(figures, every), drawn)}</svg>
<p class="axis" aria-hidden="true"><span>${begin}</span><span>${text`top: ${format(top)}`}</span><span>${text`now`}</span></p>
</figure>`;
}

/** A line as small as a word, for a row of a list; nothing where there are no figures. */
export function sparkline({
  label,
  figures,
  steps,
  format,
}: Pick<PlotView, 'label' | 'figures' | 'steps' | 'format'>): HtmlValue {
  const every = Math.ceil(steps / sparkSteps);
  const means = meansOf(figures, every);
  const summary = summarise(means);
  if (summary === undefined) return false;
  const title = text`${label}, the last hour: at most ${format(summary.max)}, on average ${format(summary.mean)}`;
  return html`<svg class="spark" viewBox="0 0 ${sparkSteps - 1} ${height}" preserveAspectRatio="none" role="img"><title>${title}</title>${shapes(means, { steps: sparkSteps, top: summary.max || 1 })}</svg>`;
}

const sparkSteps = 30;

/** The mean of each so many figures, counted from the end; null where all of them are. */
export function meansOf(figures: Figures, every: number): (number | null)[] {
  const means: (number | null)[] = [];
  for (let end = figures.length; end > 0; end -= every) {
    const known = figures.slice(Math.max(0, end - every), end).filter((figure) => figure !== null);
    means.unshift(
      known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0) / known.length,
    );
  }
  return means;
}

interface Summary {
  /** Null where nothing is measured any more. */
  readonly now: number | null;
  readonly max: number;
  readonly mean: number;
}

function summarise(figures: Figures): Summary | undefined {
  const known = figures.filter((figure) => figure !== null);
  if (known.length === 0) return undefined;
  return {
    // The newest may be under way.
    now: figures.at(-1) ?? figures.at(-2) ?? null,
    max: Math.max(...known),
    mean: known.reduce((sum, each) => sum + each, 0) / known.length,
  };
}

interface Frame {
  readonly steps: number;
  readonly top: number;
  readonly limit?: number | undefined;
}

/** One piece for each run without a gap. */
function shapes(figures: Figures, { steps, top, limit }: Frame): Html {
  const yOf = (figure: number) => String(Math.round((1 - figure / (top || 1)) * height));
  const offset = steps - figures.length;
  let line = '';
  let area = '';
  for (const { from, values } of runsOf(figures)) {
    const x = offset + from;
    const points = pointsOf(values.map(yOf));
    const path = points.map(({ at, y }) => `${x + at} ${y}`).join('L');
    // A single figure shows as a dash.
    line += points.length === 1 ? `M${path}h1` : `M${path}`;
    area += `M${x} ${height}L${path}V${height}Z`;
  }
  const limitLine =
    limit !== undefined && html`<path class="limit" d="M0 ${yOf(limit)}H${steps - 1}"/>`;
  return html`<path class="area" d="${area}"/><path class="line" d="${line}"/>${limitLine}`;
}

function* runsOf(figures: Figures): Iterable<{ from: number; values: number[] }> {
  let values: number[] = [];
  for (const [index, figure] of [...figures, null].entries()) {
    if (figure !== null) values.push(figure);
    else if (values.length > 0) {
      yield { from: index - values.length, values };
      values = [];
    }
  }
}

/** Leaves out points within a level stretch. */
function pointsOf(heights: readonly string[]): { at: number; y: string }[] {
  return heights.flatMap((y, at) =>
    at > 0 && at < heights.length - 1 && heights[at - 1] === y && heights[at + 1] === y
      ? []
      : [{ at, y }],
  );
}

/** The next number that is easy to read: 1, 2 or 5 with noughts. */
function roundUp(figure: number): number {
  if (figure <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(figure));
  return ([1, 2, 5].find((each) => each * power >= figure * 0.999) ?? 10) * power || 1;
}
