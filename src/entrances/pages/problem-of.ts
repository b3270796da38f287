import type { HubError } from '../../platform/errors.ts';
import { joined, type Text } from '../../platform/texts/text.ts';

/** What has happened and what to do about it. */
export function withHint({ shown: { message, hint } }: HubError): Text {
  return joined([message, ...(hint === undefined ? [] : [hint])]);
}
