import { median } from '../gateway/rounds.ts';
import { partsOfEight, type Sample } from './switch.ts';

/** A figure and where it is in 95 of 100 measurements. */
export interface Interval {
  readonly figure: number;
  readonly low: number;
  readonly high: number;
}

const resamples = 1_000;

/**
 * How many percent fewer requests a hub serves in the same time when it records: the median over each eight requests
 * after another, of which four were recorded and four were not.
 */
export function lostPercent(samples: readonly Sample[]): Interval {
  const { length } = partsOfEight;
  const ratios = Array.from({ length: Math.floor(samples.length / length) }, (_, index) => {
    const eight = samples.slice(index * length, (index + 1) * length);
    return sum(eight.filter(({ on }) => !on)) / sum(eight.filter(({ on }) => on));
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
