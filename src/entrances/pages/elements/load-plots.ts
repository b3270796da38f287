import type { LoadReport } from '../../../cluster/instances/load-reader.ts';
import {
  type LoadFigure,
  type LoadSeries,
  type LoadSpan,
  loadSpans,
} from '../../../platform/metrics/load-history.ts';
import { listOf, message, type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import { type Html, type HtmlValue, html } from '../html.ts';
import { meansOf, plot, sparkline } from './plot.ts';
import {
  beforeNow,
  duration,
  formatBytes,
  formatCpu,
  formatNumber,
  formatRate,
  formatSeconds,
} from './quantity.ts';

/** How busy something was. */
export interface LoadView {
  readonly report: LoadReport;
  readonly span: LoadSpan;
  /** Of this page, with the plots of the hour or the day. */
  readonly urlOf: (span: LoadSpan) => string;
  readonly title?: Phrase;
  /** Whether the hub runs it, and measures what it uses; true unless given. */
  readonly isProcess?: boolean;
  readonly limits?: { readonly cpuCores?: number; readonly memoryBytes?: number } | undefined;
}

const shown = [
  { figure: 'cpuCores', label: text`CPU`, format: formatCpu },
  { figure: 'memoryBytes', label: text`Memory`, format: formatBytes },
  { figure: 'requestsPerSecond', label: text`Requests`, format: formatRate },
  { figure: 'responseSeconds', label: text`Response time`, format: formatSeconds },
  { figure: 'webSockets', label: text`WebSockets`, format: (open: number) => formatNumber(open) },
] as const satisfies readonly {
  figure: LoadFigure;
  label: Text;
  format: (figure: number) => Text;
}[];

const words = {
  hour: {
    link: text`Last hour`,
    over: text`the last hour`,
    begin: text`1 hour ago`,
    nothing: text`Nothing has been measured in the last hour. The first figures come 10 seconds after a start.`,
    averages: text`Averages over the last hour`,
  },
  day: {
    link: text`Last day`,
    over: text`the last day`,
    begin: text`1 day ago`,
    nothing: text`Nothing has been measured in the last day. The first figures come 10 seconds after a start.`,
    averages: text`Averages over the last day`,
  },
} as const satisfies Record<LoadSpan, object>;

export function spanQuery(span: LoadSpan): string {
  return span === 'hour' ? '' : `?span=${span}`;
}

/** The plots of an hour or a day, the way to the other, and the figures as a table. */
export function loadSection(view: LoadView): Html {
  const { report, span, urlOf, title = text`Load` } = view;
  const links = (Object.keys(words) as LoadSpan[]).map(
    (each) =>
      html`<a class="button small" href="${urlOf(each)}"${each === span && html` aria-current="true"`}>${words[each].link}</a>`,
  );
  return html`<section class="block load" aria-labelledby="load-title">
<header><h2 id="load-title">${title}</h2><div class="actions">${links}</div></header>
${silentNote(report)}
${loadPlots(report.series, view)}
</section>`;
}

/** The plots alone. */
export function loadPlots(
  series: LoadSeries | undefined,
  { span, limits, isProcess = true }: Pick<LoadView, 'span' | 'limits' | 'isProcess'>,
): Html {
  if (series === undefined) {
    return html`<p class="soft">${words[span].nothing}</p>`;
  }
  const { steps } = loadSpans[span];
  const plots = shown
    // What has no pages has no visitors.
    .filter(({ figure }) => (isProcess && isMain(figure)) || isMeasured(series, figure))
    .map(({ figure, label, format }) =>
      plot({
        label,
        figures: series.figures[figure],
        steps,
        format,
        over: words[span].over,
        begin: words[span].begin,
        limit: figure === 'cpuCores' || figure === 'memoryBytes' ? limits?.[figure] : undefined,
      }),
    );
  return html`<div class="plots">${plots}</div>
<details class="more"><summary>${text`The figures as a table`}</summary>${figureTable(series, span)}</details>`;
}

/**
 * CPU and memory of the last hour, small and with their figures, or how fast it answered where the hub does not run it;
 * nothing where nothing was measured.
 */
export function loadSparks(series: LoadSeries | undefined): HtmlValue {
  if (series === undefined) return false;
  const isRunHere = shown.some(({ figure }) => isMain(figure) && isMeasured(series, figure));
  const sparks = shown.map(({ figure, label, format }) => {
    if (isRunHere ? !isMain(figure) : figure !== 'responseSeconds' || !isMeasured(series, figure))
      return false;
    const now = series.figures[figure].at(-1);
    return html`<span>${label} ${typeof now === 'number' && html`<b>${format(now)}</b> `}${loadSpark(series, figure)}</span>`;
  });
  return html`<span class="sparks">${sparks}</span>`;
}

/** What was measured last, in words. */
export function loadFigures(
  series: LoadSeries | undefined,
): Readonly<Partial<Record<LoadFigure, HtmlValue>>> {
  if (series === undefined) return {};
  return Object.fromEntries(
    shown.map(({ figure, format }) => {
      const now = series.figures[figure].at(-1);
      return [figure, typeof now === 'number' && format(now)];
    }),
  );
}

/** One figure of the last hour, small. */
export function loadSpark(series: LoadSeries | undefined, wanted: LoadFigure): HtmlValue {
  const { steps } = loadSpans.hour;
  const figure = shown.find((each) => each.figure === wanted);
  if (series === undefined || figure === undefined) return false;
  const { label, format } = figure;
  return sparkline({ label, figures: series.figures[wanted], steps, format });
}

const isMain = (figure: LoadFigure) => figure === 'cpuCores' || figure === 'memoryBytes';

function isMeasured({ figures }: LoadSeries, figure: LoadFigure): boolean {
  return figures[figure].some((each) => each !== null);
}

function silentNote({ silent }: LoadReport): HtmlValue {
  if (silent.length === 0) return false;
  return html`<p class="problem">${message('{count, plural, one {{names} does not answer: what it has measured is missing.} other {{names} do not answer: what they have measured is missing.}}', { count: silent.length, names: listOf(silent) })}</p>`;
}

const tableRows = 12;

function figureTable(series: LoadSeries, span: LoadSpan): Html {
  const { steps, stepSeconds } = loadSpans[span];
  const every = steps / tableRows;
  const columns = shown.map(({ figure, label, format }) => ({
    label,
    format,
    means: meansOf(series.figures[figure], every),
  }));
  const length = Math.max(...columns.map(({ means }) => means.length));
  const rows = Array.from({ length }, (_, back) => {
    const seconds = (back + 1) * every * stepSeconds;
    return html`<tr><th scope="row">${back === 0 ? text`Last ${duration(seconds)}` : beforeNow(seconds)}</th>${columns.map(
      ({ means, format }) => {
        const mean = means.at(-1 - back) ?? null;
        return html`<td>${mean === null ? '–' : format(mean)}</td>`;
      },
    )}</tr>`;
  });
  return html`<table class="figures"><caption class="visually-hidden">${words[span].averages}</caption>
<thead><tr><th scope="col">${text`Until`}</th>${columns.map(({ label }) => html`<th scope="col">${label}</th>`)}</tr></thead>
<tbody>${rows}</tbody></table>`;
}
