import { z } from 'zod';

const days = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

function isTimeZone(timeZone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone });
    return true;
  } catch {
    return false;
  }
}

/** When servers of groups are started ahead. */
export const startTimeSchema = z.strictObject({
  groups: z.array(z.string().min(1)).min(1).describe('Groups whose members get it.'),
  days: z
    .array(z.enum(days))
    .min(1)
    .default([...days])
    .describe('Days of the week; each day by default.'),
  time: z
    .string()
    .regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, 'is a time such as 08:45')
    .describe(
      'Time of day, `08:45`. One that a change of the clocks leaves out does not come that day.',
    ),
  time_zone: z
    .string()
    .refine(isTimeZone, 'is no time zone such as Europe/Berlin')
    .default('UTC')
    .describe('IANA time zone of day and time, such as `Europe/Berlin`.'),
  profile: z
    .string()
    .min(1)
    .optional()
    .describe('Profile they are started with; by default the last choice of each user.'),
});

export type StartTime = z.output<typeof startTimeSchema>;
