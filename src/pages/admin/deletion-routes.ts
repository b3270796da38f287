import type { Context } from 'koa';
import type { RequireVersion } from '../../crypto/version.ts';
import type { Text } from '../../texts/text.ts';
import type { ChangedMeanwhile } from '../elements/changed-meanwhile.ts';
import { type ConfirmView, confirmPage } from '../errors/confirm-page.ts';
import { type Admin, type AdminContext, isOfFormerVersion, versionIn } from './admin-context.ts';

/** How one kind of thing is deleted. */
interface Deletion<Subject> {
  /** What the address names. Throws as `Admin.require` does. */
  find(ctx: Context, who: Admin): Promise<Subject>;
  versionOf(subject: Subject): string;
  question(
    subject: Subject,
  ): Pick<ConfirmView, 'title' | 'consequences' | 'label' | 'action' | 'cancelUrl'>;
  /** What someone else has made of it. */
  changeOf(who: Admin, subject: Subject): Promise<ChangedMeanwhile>;
  /** Calls `requireVersion` with the version that it deletes. */
  delete(who: Admin, subject: Subject, requireVersion: RequireVersion): Promise<void>;
  /** What the page says that comes after it. */
  done(subject: Subject): { readonly url: string; readonly text: Text };
}

/** Asks before it deletes, and again when someone has changed meanwhile what was asked about. */
export function addDeletion<Subject>(
  admin: AdminContext,
  path: string,
  deletion: Deletion<Subject>,
): void {
  const { pages } = admin;

  async function ask(ctx: Context, subject: Subject, changed?: ChangedMeanwhile): Promise<void> {
    const page = confirmPage({
      layout: await pages.formLayoutFor(ctx),
      ...deletion.question(subject),
      fields: { version: deletion.versionOf(subject) },
      changed,
    });
    pages.send(ctx, page, changed === undefined ? 200 : 400);
  }

  admin.get(path, async (ctx, who) => ask(ctx, await deletion.find(ctx, who)));

  admin.post(path, async (ctx, who, form) => {
    const subject = await deletion.find(ctx, who);
    try {
      await deletion.delete(who, subject, versionIn(form));
    } catch (error) {
      if (!isOfFormerVersion(error)) throw error;
      return ask(ctx, subject, await deletion.changeOf(who, subject));
    }
    const { url, text } = deletion.done(subject);
    pages.redirectWithNotice(ctx, url, { kind: 'good', text });
  });
}
