import { type Phrase, text } from '../../texts/text.ts';

const originWords: Readonly<Record<string, Phrase>> = {
  config: text`the configuration file`,
  api: text`administrators`,
};

/** Who decides on a group, a role or who holds one; an authenticator goes by its name. */
export const originWord = (origin: string): Phrase => originWords[origin] ?? origin;
