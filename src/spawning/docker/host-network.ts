import { createFindStranger } from '../../processes/port-owner.ts';
import { findTaggedProcesses } from '../../processes/process-tag.ts';

/**
 * Says which other program has the port of a container that shares the network of this machine; undefined
 * where the hub does not see the processes of containers, being no root or in a container itself.
 */
export async function findStrangerOf(
  tag: string,
  url: string,
  pid: number | undefined,
): Promise<(() => Promise<string | undefined>) | undefined> {
  const isSeen = pid !== undefined && (await findTaggedProcesses(tag)).includes(pid);
  if (!isSeen) return undefined;
  const findStranger = createFindStranger();
  return () => findStranger(url, { groupId: pid, tag });
}
