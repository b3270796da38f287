import { z } from 'zod';
import { seconds } from './common-schema.ts';

/** The time limits of the members of a group. */
const groupLimits = z.strictObject({
  idle_timeout_seconds: seconds
    .optional()
    .describe('In place of that of the profile and of Spawner.idle_timeout_seconds.'),
  max_age_seconds: seconds
    .optional()
    .describe('In place of that of the profile and of Spawner.max_age_seconds.'),
});

/** How long servers run: settings of the section Spawner. */
export const timeLimitKeys = {
  idle_timeout_seconds: seconds
    .default(0)
    .describe('Seconds without activity after which a running server is stopped; 0 for no limit.'),
  idle_cpu_cores: z
    .number()
    .min(0)
    .default(0.05)
    .describe(
      'Cores from which on a server counts as active, on average over a minute, though its user sends nothing; what it sends does not count then. 0 does not look at them: what it sends counts as activity.',
    ),
  idle_action: z
    .enum(['stop', 'pause'])
    .default('stop')
    .describe(
      'What becomes of a server that reaches its idle time: it is stopped, or paused with all that it has in memory until it is used again. A paused one is stopped at its longest age.',
    ),
  max_age_seconds: seconds
    .default(0)
    .describe('Seconds after its start at which a server is stopped, used or not; 0 for no limit.'),
  limits_by_group: z
    .record(z.string().min(1).max(255), groupLimits)
    .default({})
    .describe(
      'Other idle_timeout_seconds and max_age_seconds for the members of groups, by the name of the group. A value here beats that of the profile; of several groups that have one, the longest counts, and 0 is the longest.',
    ),
  keep_running_max_seconds: seconds
    .default(86_400)
    .describe(
      'Longest time in seconds for which users may choose to keep an idle server running, counted from when they do; its longest age stays. 0 for no such choice.',
    ),
  limit_warning_seconds: seconds
    .default(600)
    .describe(
      'Seconds before such a stop at which the home page warns its user, with a button that keeps the server where that can be.',
    ),
  remove_named_servers_at_limit: z
    .boolean()
    .default(false)
    .describe('Whether a named server that such a limit stops is deleted.'),
};
