import { expect, test } from 'vitest';
import { savePhrase, text } from '../../platform/texts/text.ts';
import { createProgressLog } from './progress-log.ts';
import { answerProgress, createRemoteProgress } from './remote-progress.ts';
import type { Server } from './server.ts';

test('the steps of a start at another instance are for readers of each language', async () => {
  const log = createProgressLog();
  const steps = [text`Pulling the image ${'a/b:1'}.`, 'A step of a plugin.'];
  for (const message of steps) log.add({ progress: 10, message });
  const remote = createRemoteProgress({
    directory: { addressOf: () => ({ id: 'b', name: 'b', url: 'http://b/' }) },
    caller: {
      call: async (_to, _operation, question) =>
        JSON.parse(JSON.stringify(answerProgress(() => log, question))),
    },
    lifecycle: { untilReady: async () => undefined },
    urlOf: () => '/user/ann/',
  });
  const reported = await remote.soFar({ id: '1', instance: { id: 'b' } } as Server);
  expect(reported.map(({ message }) => savePhrase(message))).toEqual(
    steps.map((step) => savePhrase(step)),
  );
});
