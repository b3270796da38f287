import { message, type Phrase, type Text, text } from '../../platform/texts/text.ts';

export const homeIsFull = text`The home is full: a file browser starts in place of the server, to make room.`;

export const serverReady = text`The server is ready.`;
export const startCancelled = text`The start was cancelled.`;
export const endedWithoutHub = text`The server ended while the hub was not running.`;

export function isAlready(state: string): Text {
  return message(
    '{state, select, running {The server is running.} starting {The server is starting.} other {The server is stopping.}}',
    { state },
  );
}

export function addressTaken(foreignProcess: Phrase): Text {
  return text`Another program has the address of the server: ${foreignProcess}.`;
}
