import { message } from '../../platform/texts/text.ts';
import type { SpawnProgress } from '../../plugin/host/spawn-request.ts';
import { pulling } from '../spawner-texts.ts';

/** One message of a pull, of Docker or Podman (Docker Engine API, ImageCreate). */
export interface PullEvent {
  readonly status?: string;
  /** Short digest of a layer. */
  readonly id?: string;
  /** Why the pull has failed, as the last event. */
  readonly error?: string;
  readonly progressDetail?: { readonly current?: number; readonly total?: number };
}

interface Layer {
  current: number;
  total: number;
  isDone: boolean;
}

/** Adds up what an engine tells of the layers of an image. */
export interface PullProgress {
  add(event: PullEvent): void;
  summary(): SpawnProgress;
}

const maxLayers = 1_000;
const begins = /^(?:Pulling fs layer|Waiting|Downloading|Copying blob)/;
const ends = /^(?:Pull complete|Already exists)/;
/** Part of the bar of a start that the pull has. */
const from = 5;
const to = 40;

export function createPullProgress(image: string): PullProgress {
  const layers = new Map<string, Layer>();

  return {
    add({ id, status = '', progressDetail }) {
      if (id === undefined) return;
      let layer = layers.get(id);
      if (layer === undefined) {
        if (layers.size >= maxLayers || !(begins.test(status) || ends.test(status))) return;
        layer = { current: 0, total: 0, isDone: false };
        layers.set(id, layer);
      }
      const { current, total } = progressDetail ?? {};
      if (status === 'Downloading' && current !== undefined) {
        layer.current = current;
        layer.total = Math.max(total ?? 0, current);
      } else if (status === 'Download complete') layer.current = layer.total;
      if (ends.test(status)) layer.isDone = true;
    },

    summary() {
      const all = [...layers.values()];
      const done = all.filter(({ isDone }) => isDone).length;
      const current = sum(all.map((layer) => (layer.isDone ? layer.total : layer.current)));
      const total = sum(all.map((layer) => layer.total));
      const share = total > 0 ? current / total : done / Math.max(all.length, 1);
      const pullStep = () => {
        if (all.length === 0) return pulling(image);
        const counts = { image, done: String(done), layers: String(all.length) };
        if (total === 0) {
          return message(
            'Pulling the image {image}: {done} of {layers, plural, one {# layer} other {# layers}}.',
            counts,
          );
        }
        return message(
          'Pulling the image {image}: {done} of {layers, plural, one {# layer} other {# layers}}, {current, number} of {total, number} MB.',
          { ...counts, current: megabytes(current), total: megabytes(total) },
        );
      };
      return {
        progress: Math.round(from + (to - from) * share),
        phase: 'pulling',
        message: pullStep(),
      };
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(bytes < 10e6 ? 1 : 0);
}
