import type { Text } from '../../platform/texts/text.ts';
import { createFindForeignProcess } from '../processes/port-owner.ts';
import { readProcessTag } from '../processes/process-tag.ts';

/**
 * Says which other program has the port of a container that shares the network of this machine; undefined
 * where the hub does not see the processes of containers, being no root or in a container itself.
 */
export function findForeignProcessOf(
  tag: string,
  url: string,
  pid: number | undefined,
): (() => Promise<Text | undefined>) | undefined {
  if (pid === undefined || readProcessTag(pid) !== tag) return undefined;
  const findForeignProcess = createFindForeignProcess();
  return () => findForeignProcess(url, { groupId: pid, tag });
}
