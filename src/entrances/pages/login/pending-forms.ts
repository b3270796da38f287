import { z } from 'zod';
import type { Login } from '../../../identity/sessions/login-sessions.ts';
import type { Sealer } from '../../../platform/crypto/sealer.ts';
import { HubError } from '../../../platform/errors.ts';
import { text } from '../../../platform/texts/text.ts';

/** A form that was sent, and waits until its user has shown again who they are. */
export interface PendingForm {
  /** The path it was sent to. */
  readonly action: string;
  readonly form: URLSearchParams;
  /** Where the user goes who does not want to. */
  readonly cancelUrl: string;
}

/**
 * Forms that wait, as one hidden field of the page that asks. They are sealed: no password that was typed
 * stands in a page, and none but the session that sent a form can send it on, to where it was sent.
 */
export interface PendingForms {
  readonly lifetimeMs: number;
  /** Hidden fields that hold the form. Throws `payload_too_large` for one that is too long for that. */
  seal(login: Login, waiting: PendingForm): Readonly<Record<string, string>>;
  /** The form that waits in what was sent, if one does. Throws `bad_request` where it no longer may. */
  open(login: Login, sent: URLSearchParams): PendingForm | undefined;
}

/** Hidden field of a form that waits. */
export const pendingFormField = 'pending_form';
const lifetimeMs = 600_000;
const maxCharacters = 256 * 1024;
const contentSchema = z.object({
  action: z.string(),
  form: z.string(),
  cancelUrl: z.string(),
  expiresAt: z.number(),
});

export function createPendingForms(deps: {
  readonly sealer: Sealer;
  /** Longest form that is read at all. */
  readonly formLimitBytes: number;
  readonly now?: () => number;
}): PendingForms {
  const { sealer, now = Date.now } = deps;
  // Sealed it is a third longer, and comes with other fields.
  const longest = Math.min(maxCharacters, deps.formLimitBytes * 0.7 - 4096);
  const contextOf = ({ session }: Login) => `pending-form:${session.sessionId}`;

  return {
    lifetimeMs,

    seal(login, { action, form, cancelUrl }) {
      const kept = new URLSearchParams(form);
      kept.delete('_csrf');
      const expiresAt = now() + lifetimeMs;
      const content: z.output<typeof contentSchema> = {
        action,
        form: kept.toString(),
        cancelUrl,
        expiresAt,
      };
      const json = JSON.stringify(content);
      if (json.length > longest) {
        throw new HubError('payload_too_large', text`Confirm first that it is you.`, {
          hint: text`This form is too long to wait for that. Confirm on your account page, then send it again.`,
        });
      }
      return { [pendingFormField]: sealer.seal(json, contextOf(login)) };
    },

    open(login, sent) {
      const sealed = sent.get(pendingFormField);
      if (sealed === null) return undefined;
      const json = sealer.open(sealed, contextOf(login));
      const content = json === undefined ? undefined : contentSchema.parse(JSON.parse(json));
      if (content === undefined || content.expiresAt <= now()) {
        throw new HubError('bad_request', text`This form has waited too long.`, {
          hint: text`Go back and fill it in again.`,
        });
      }
      const { action, form, cancelUrl } = content;
      return { action, form: new URLSearchParams(form), cancelUrl };
    },
  };
}
