import { median } from '../gateway/rounds.ts';
import { partsOfFour, type Sample } from './switch.ts';

/** A figure and where it is in 95 of 100 measurements. */
export interface Interval {
  readonly figure: number;
  readonly low: number;
  readonly high: number;
}

const resamples = 1_000;

/**
 * How many percent fewer requests a hub serves in the same time when it records: the median over each four requests
 * after another, of which two were recorded and two were not.
 */
export function lostPercent(samples: readonly Sample[]): Interval {
  const { length } = partsOfFour;
  const ratios = Array.from({ length: Math.floor(samples.length / length) }, (_, index) => {
    const four = samples.slice(index * length, (index + 1) * length);
    return sum(four.filter(({ on }) => !on)) / sum(four.filter(({ on }) => on));
  });
  const medians = Array.from({ length: resamples }, () =>
    median(ratios.map(() => ratios[Math.floor(Math.random() * ratios.length)] ?? 0)),
  ).sort((one, other) => one - other);
  const toPercent = (ratio = Number.NaN) => (1 - ratio) * 100;
  return {
    figure: toPercent(median(ratios)),
    low: toPercent(medians[Math.floor(resamples * 0.975)]),
    high: toPercent(medians[Math.floor(resamples * 0.025)]),
  };
}

function sum(samples: readonly Sample[]): number {
  return samples.reduce((total, { micros }) => total + micros, 0);
}
