import { z } from 'zod';
import { secretReference } from './common-schema.ts';

/** `Hub.backup`. */
export const backupSection = z
  .strictObject({
    directory: z
      .string()
      .min(1)
      .describe('Folder for the backups, which the hub makes; best on another disk.'),
    interval_hours: z
      .number()
      .positive()
      .max(24 * 366)
      .default(24)
      .describe('From one backup to the next.'),
    keep: z
      .int()
      .min(1)
      .max(10_000)
      .default(7)
      .describe('How many are kept; the oldest goes. Other files in the folder stay.'),
    passphrase: secretReference
      .optional()
      .describe(
        'Encrypts the backups, those of `hub backup` too. Without it nobody can restore them: keep it elsewhere.',
      ),
  })
  .describe(
    'Backups of the database by themselves: one instance of the hub makes each, by `hub backup`.',
  );
