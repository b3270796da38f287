import { objectName } from '../../platform/protocol/object-name.ts';
import type { Volume } from '../../plugin/host/spawn-request.ts';
import { safeFileName } from './safe-file-name.ts';

/**
 * Fills in whose volume it is: as a folder where it is one, otherwise as part of a volume's name. That no two users
 * share one rests on `findVolumeProblems` as well.
 */
export function ownVolume(volume: Volume, accountName: string, serverName: string): Volume {
  const { source, subPath } = volume;
  const folderName = safeFileName(accountName);
  const userName = source.startsWith('/') ? folderName : objectName(accountName, '');
  // All at once: what is filled in is not filled in again.
  const fillIn = (text: string, name: string) =>
    text.replaceAll(/\{(username|server)\}/g, (_, word: string) =>
      word === 'username' ? name : serverName,
    );
  const owner = source.includes('{server}') ? ('server' as const) : ('user' as const);
  return {
    ...volume,
    source: fillIn(source, userName),
    ...(subPath !== undefined && { subPath: fillIn(subPath, folderName) }),
    ...(source.includes('{username}') && { owner }),
  };
}
