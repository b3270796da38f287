import { text } from '../../../platform/texts/text.ts';
import type { BoundPages } from '../forms/binding.ts';
import { bindDeletion } from '../forms/deletion.ts';
import { keysPage } from './keys-page.ts';

/** `/hub/admin/keys`: what ID tokens are signed with. */
export function adminKeyRoutes(bound: BoundPages): void {
  const { urls } = bound.pages;
  bound.page('/admin/keys', 'viewSigningKeys', ({ layout, model }) =>
    keysPage({ layout, keys: model }),
  );
  bound.form('/admin/keys/rotate', 'rotateSigningKeys', {
    done: () => ({
      to: urls.adminKeys,
      say: text`The next keys are published, and sign from tomorrow on.`,
    }),
  });
  bindDeletion(bound, '/admin/keys/{key}/revoke', {
    view: 'viewSigningKeyRevocation',
    operation: 'revokeSigningKey',
    question: ({ id }) => ({
      title: text`Revoke the key ${id}?`,
      consequences: [
        text`Apps refuse what it has signed once they notice, and their users log in again. For a key that has leaked.`,
      ],
      label: text`Revoke`,
      action: urls.adminRevokeKey(id),
      cancelUrl: urls.adminKeys,
    }),
    done: ({ key = '' }) => ({ to: urls.adminKeys, say: text`The key ${key} has ended.` }),
  });
}
