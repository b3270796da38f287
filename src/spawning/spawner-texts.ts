import { type Text, type TextValue, text } from '../platform/texts/text.ts';

export const containerStarted = text`The container is started.`;

export function pulling(image: string): Text {
  return text`Pulling the image ${image}.`;
}

export function notStartedBecause(reason: TextValue): Text {
  return text`The server did not start: ${reason}.`;
}

/** Why a server ended that used more memory than it may; undefined where the limit is not known. */
export function outOfMemory(limitBytes: number | undefined): Text {
  if (limitBytes === undefined) return text`out of memory`;
  const mebibytes = Math.round((limitBytes / 1024 ** 2) * 10) / 10;
  return text`out of memory at ${`${mebibytes} MiB`}`;
}
