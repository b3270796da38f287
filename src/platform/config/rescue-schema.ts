import { byteSize, command } from './common-schema.ts';

/** What starts where a home is full: settings of the section Spawner. */
export const rescueKeys = {
  rescue_cmd: command
    .optional()
    .describe(
      'Command that starts in place of cmd where the home of the user has no room left, so that files can be removed; the same is replaced as in cmd. By default a file browser; an empty list starts cmd all the same.',
    ),
  home_min_free: byteSize
    .default(10 * 1024 ** 2)
    .describe(
      'Free space below which a home counts as full, as the file system or its project quota tells. Looked at before each start on the machine of the hub.',
    ),
};
