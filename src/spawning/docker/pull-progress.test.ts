import { expect, test } from 'vitest';
import { createPullProgress } from './pull-progress.ts';

test('the layers of a pull are added up', () => {
  const progress = createPullProgress('lab:1');
  expect(progress.summary().message).toEqual('Pulling the image lab:1.');
  progress.add({ status: 'Pulling from library/lab', id: '1' });
  for (const id of ['a', 'b', 'c']) progress.add({ status: 'Pulling fs layer', id });
  progress.add({ status: 'Already exists', id: 'd' });
  expect(progress.summary()).toEqual({
    progress: 14,
    phase: 'pulling',
    message: 'Pulling the image lab:1: 1 of 4 layers.',
  });
  const downloading = (id: string, current: number) =>
    progress.add({ status: 'Downloading', id, progressDetail: { current, total: 20_000_000 } });
  downloading('a', 5_000_000);
  downloading('b', 20_000_000);
  progress.add({ status: 'Pull complete', id: 'b' });
  expect(progress.summary()).toEqual({
    progress: 27,
    phase: 'pulling',
    message: 'Pulling the image lab:1: 2 of 4 layers, 25 of 40 MB.',
  });
});
