import type { AnnouncementLevel } from '../../../cluster/notices/notice-store.ts';
import type { AuditDetail } from '../../../platform/audit/detail-labels.ts';
import { reasonLabels } from '../../../platform/audit/reason-labels.ts';
import { type Phrase, type Text, text } from '../../../platform/texts/text.ts';
import type { Service } from '../../../workloads/services/service.ts';

/** Who checks the login of those who ask for a service. */
export const accessLabels: Readonly<Record<Service['access'], Text>> = {
  gateway: text`Users with permission`,
  service: text`Checked by the service`,
  public: text`Open to everyone`,
};

export const kindLabels = { user: text`User`, group: text`Group`, service: text`Service` } as const;
export const kindsLabels = {
  user: text`Users`,
  group: text`Groups`,
  service: text`Services`,
} as const;

export const levelLabels: Readonly<Record<AnnouncementLevel, Text>> = {
  info: text`Information`,
  warning: text`Warning`,
};

const codeLabels: Readonly<Partial<Record<keyof AuditDetail, Readonly<Record<string, Text>>>>> = {
  access: accessLabels,
  changed: {
    name: text`Name`,
    display_name: text`Display name`,
    user_options: text`Options`,
  },
  level: levelLabels,
  origin: { config: text`the configuration file`, api: text`administrators` },
  purpose: {
    invitation: text`Invitation`,
    password_reset: text`New password`,
    login: text`Login`,
    'second-factor': text`Second factor`,
    confirm: text`Confirming a login`,
  },
  reason: reasonLabels,
};

/** What a value of a fact of a action is called; one that is no code, or of a later version, is shown as it is. */
export function codeWord(fact: string, value: string): Phrase {
  const words = Object.hasOwn(codeLabels, fact) ? codeLabels[fact as keyof AuditDetail] : undefined;
  return words !== undefined && Object.hasOwn(words, value) ? (words[value] ?? value) : value;
}

/** Who decides on a group, a role or who holds one; an authenticator goes by its name. */
export const originWord = (origin: string): Phrase => codeWord('origin', origin);
