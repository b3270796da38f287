import { z } from 'zod';
import { seconds } from './common-schema.ts';

/** The time limits of the members of a group. */
const groupLimits = z.strictObject({
  idle_timeout_seconds: seconds
    .optional()
    .describe('Overrides that of the profile and Spawner.idle_timeout_seconds.'),
  max_age_seconds: seconds
    .optional()
    .describe('Overrides that of the profile and Spawner.max_age_seconds.'),
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
      'CPU use, in cores averaged over a minute, from which a server counts as active even if its user sends nothing; what the server sends is then ignored. 0 ignores CPU use, and what the server sends counts as activity.',
    ),
  idle_action: z
    .enum(['stop', 'pause'])
    .default('stop')
    .describe(
      'What happens to an idle server: stopped, or paused with its memory intact until it is used again. A paused server is stopped when it reaches max_age_seconds.',
    ),
  max_age_seconds: seconds
    .default(0)
    .describe('Seconds after which a server is stopped, idle or not; 0 for no limit.'),
  limits_by_group: z
    .record(z.string().min(1).max(255), groupLimits)
    .default({})
    .describe(
      "idle_timeout_seconds and max_age_seconds for members of groups, by group name. They override the profile's; with several groups the longest applies, and 0 is the longest.",
    ),
  keep_running_max_seconds: seconds
    .default(86_400)
    .describe(
      'Maximum seconds for which users may extend an idle server; max_age_seconds still applies. 0 turns extending off.',
    ),
  limit_warning_seconds: seconds
    .default(600)
    .describe(
      'Seconds before such a stop at which the home page warns the user, with a button to extend the server where possible.',
    ),
  remove_named_servers_at_limit: z
    .boolean()
    .default(false)
    .describe('Whether named servers stopped by such a limit are deleted.'),
};
