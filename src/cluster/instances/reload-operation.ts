import { z } from 'zod';

/** The operation by which an operator has an instance, and through it the others, reload. */
export const reloadOperation = 'reload';

/** How long to wait for the answer: providers of logins are asked again meanwhile. */
export const reloadTimeoutMs = 60_000;

const names = z.array(z.string());

/** What came of a reload. */
export const reloadOutcomeSchema = z.discriminatedUnion('outcome', [
  z.object({
    outcome: z.literal('reloaded'),
    /** Settings that are in force now, such as `Hub.title`. */
    changed: names,
    /** Settings that changed too, and need a restart. */
    needRestart: names,
    /** Whether a file that the settings name has changed, such as the logo. */
    filesChanged: z.boolean(),
    /** Who may do more than before, such as `ops to group staff (gina)`, and new members of groups. */
    given: z.object({ roles: names, members: names }),
    services: z.object({ added: names, removed: names, restarted: names, updated: names }),
    /** What works but is probably a mistake. */
    warnings: names,
  }),
  /** The former configuration stays in force. */
  z.object({ outcome: z.literal('refused'), problem: z.string() }),
]);

export type ReloadOutcome = z.output<typeof reloadOutcomeSchema>;
export type ReloadReport = Extract<ReloadOutcome, { outcome: 'reloaded' }>;
