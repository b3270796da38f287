import { text } from '../../../platform/texts/text.ts';
import type { BoundPages } from '../forms/binding.ts';
import { recoveryCodesPage } from './second-factor-pages.ts';

/** `/hub/account/passkeys`: adding, renaming and removing one's own passkeys. */
export function passkeyRoutes({ form, pages }: BoundPages): void {
  const back = `${pages.urls.account}#passkeys`;
  const passkeyIn = (sent: URLSearchParams) => sent.get('passkey') ?? '';

  form('/account/passkeys', 'addOwnPasskey', {
    body: (sent) => ({
      state: sent.get('passkey_state') ?? '',
      response: sent.get('passkey_response') ?? '',
      name: sent.get('name') ?? '',
    }),
    async done({ ctx, result: { recovery_codes: codes } }) {
      if (codes === undefined) return { to: back, say: text`Your passkey is added.` };
      const layout = await pages.layoutFor(ctx);
      return recoveryCodesPage({ layout, codes, after: 'passkey', next: back });
    },
  });

  form('/account/passkeys/rename', 'renameOwnPasskey', {
    body: (sent) => ({ id: passkeyIn(sent), name: sent.get('name') ?? '' }),
    done: () => ({ to: back, say: text`Your passkey is renamed.` }),
  });

  form('/account/passkeys/remove', 'removeOwnPasskey', {
    body: (sent) => ({ id: passkeyIn(sent) }),
    done: () => ({
      to: back,
      say: text`The passkey is removed. All other browsers are logged out.`,
    }),
  });
}
