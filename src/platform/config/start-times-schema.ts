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
  groups: z.array(z.string().min(1)).min(1).describe("Groups whose members' servers are started."),
  days: z
    .array(z.enum(days))
    .min(1)
    .default([...days])
    .describe('Days of the week; every day by default.'),
  time: z
    .string()
    .regex(/^(?:[01]\d|2[0-3]):[0-5]\d$/, 'is a time such as 08:45')
    .describe(
      'Time of day, such as `08:45`. A time skipped by daylight saving is skipped that day.',
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
    .describe("Profile to start with; by default each user's last choice."),
});

/** What starts servers before their users do: settings of the section Spawner. */
export const startAheadKeys = {
  start_at: z
    .array(startTimeSchema)
    .default([])
    .describe(
      'Starts the servers of groups at set times, eight at once, so that they are ready when their users arrive. Servers that have run since then are left alone.',
    ),
  start_at_login: z
    .union([z.boolean(), z.literal('choice')])
    .default(false)
    .describe(
      "Whether a login starts the user's stopped default server; it waits for nothing. With `choice` it does for users who have chosen so on the home page.",
    ),
};

export type StartTime = z.output<typeof startTimeSchema>;
