import { listProcessTags } from '../../src/spawning/processes/process-tag.ts';

/** The processes that carry the tag of a service, whoever has started them. */
export async function copiesOf(name: string): Promise<readonly number[]> {
  const tags = await listProcessTags();
  return [...tags].flatMap(([tag, pids]) => (tag.includes(`/service-${name}.log#`) ? pids : []));
}

/** Watches that there is never more than one process of a service; the most there were are told at the end. */
export function watchCopies(name: string): () => Promise<number> {
  let max = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      max = Math.max(max, (await copiesOf(name)).length);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  })();
  return async () => {
    isOver = true;
    await watching;
    return max;
  };
}
