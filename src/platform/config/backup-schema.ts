import { z } from 'zod';
import { secretReference } from './common-schema.ts';

/** `Hub.backup`. */
export const backupSection = z
  .strictObject({
    directory: z
      .string()
      .min(1)
      .describe('Folder for the backups, created if missing; preferably on another disk.'),
    interval_hours: z
      .number()
      .positive()
      .max(24 * 366)
      .default(24)
      .describe('Hours between backups.'),
    keep: z
      .int()
      .min(1)
      .max(10_000)
      .default(7)
      .describe(
        'Number of backups to keep; the oldest is deleted first. Other files in the folder are left alone.',
      ),
    passphrase: secretReference
      .optional()
      .describe(
        'Encrypts backups, including those made by hand with `hub backup`. They cannot be restored without it: keep a copy elsewhere.',
      ),
  })
  .describe('Scheduled database backups, each made by one instance with `hub backup`.');
