import { byteSize, command } from './common-schema.ts';

/** What starts where a home is full: settings of the section Spawner. */
export const rescueKeys = {
  rescue_cmd: command
    .optional()
    .describe(
      "Command started instead of cmd when the user's home is full, so that files can be removed; placeholders as in cmd. By default a file browser; an empty list starts cmd anyway.",
    ),
  home_min_free: byteSize
    .default(10 * 1024 ** 2)
    .describe(
      "Free space below which a home counts as full, as reported by the file system or its project quota. Checked before each start on the hub's machine.",
    ),
};
