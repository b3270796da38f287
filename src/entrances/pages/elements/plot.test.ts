import { describe, expect, test } from 'vitest';
import { loadPlots } from './load-plots.ts';
import { meansOf, type PlotView, plot, sparkline } from './plot.ts';

const view: PlotView = {
  label: 'CPU',
  figures: [],
  steps: 10,
  format: (figure) => `${Math.round(figure * 100)} %`,
  over: 'the last hour',
  begin: '1 hour ago',
};
const draw = (more: Partial<PlotView>) => String(plot({ ...view, ...more }));
const lineOf = (markup: string) => / class="line" d="([^"]*)"/.exec(markup)?.[1];

describe('a plot', () => {
  test('ends now: what is younger than it begins further right', () => {
    expect(lineOf(draw({ figures: [0, 1] }))).toBe('M8 100L9 0');
  });

  test('has a gap where nothing was measured, and a dash for a single figure', () => {
    const markup = draw({ figures: [1, 0, null, null, 1, null, 0, 0.5] });
    expect(lineOf(markup)).toBe('M2 0L3 100M6 0h1M8 100L9 50');
  });

  test('leaves out points of a level stretch, and nothing else', () => {
    expect(lineOf(draw({ figures: [1, 1, 1, 1, 0, 0, 0, 1] }))).toBe('M2 0L5 0L6 100L8 100L9 0');
  });

  test('says its figures as text, and its limit, which is a line', () => {
    const markup = draw({ figures: [0.2, 0.6], limit: 2 });
    expect(markup).toContain(
      '<title>CPU, the last hour: now 60 %, at most 60 %, on average 40 %, the limit is 200 %</title>',
    );
    expect(markup).toContain('CPU <b>60 %</b> of 200 %');
    expect(markup).toContain('<path class="limit" d="M0 0H9"/>');
    expect(lineOf(markup)).toBe('M8 90L9 70');
  });

  test('says what is no longer measured, and what never was', () => {
    expect(draw({ figures: [0.2, null, null] })).toContain('<b>nothing now</b>');
    const none = draw({ figures: [null] });
    expect(none).toContain('not measured yet');
    expect(none).not.toContain('<svg');
  });

  test('of nothing but noughts is a line at its foot', () => {
    expect(lineOf(draw({ figures: [0, 0] }))).toBe('M8 100L9 100');
  });
});

test('means are counted from the newest figure, and of what was measured', () => {
  expect(meansOf([9, 1, 3, null, 5, null, null], 2)).toEqual([9, 2, 5, null]);
});

test('a small plot is light enough for the rows of a list', () => {
  const figures = Array.from({ length: 360 }, (_, step) => Math.sin(step) + 1.1);
  const markup = String(sparkline({ ...view, figures, steps: 360 }));
  expect(markup.length).toBeLessThan(800);
  expect(markup).toContain('<title>CPU, the last hour: at most');
  expect(sparkline({ ...view, figures: [null], steps: 360 })).toBe(false);
});

test('plots are of what there is to measure, with the figures as a table', () => {
  const none = [null, null];
  const markup = String(
    loadPlots(
      {
        stepSeconds: 10,
        figures: {
          cpuCores: [0.5, 1],
          memoryBytes: [null, 2e6],
          requestsPerSecond: none,
          responseSeconds: none,
          webSockets: none,
        },
      },
      { span: 'hour' },
    ),
  );
  expect(markup.match(/<figure/g)).toHaveLength(2);
  expect(markup).toContain(
    '<tr><th scope="row">Last 5 minutes</th><td>75 %</td><td>2.0 MB</td><td>–</td>',
  );
  expect(String(loadPlots(undefined, { span: 'day' }))).toContain('in the last day');
});
