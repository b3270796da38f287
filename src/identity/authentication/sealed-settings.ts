import type { Sealer } from '../../platform/crypto/sealer.ts';
import type { SettingStore } from '../../plugin/host/authenticator.ts';

/**
 * The settings of one authenticator: apart from those of the others, and encrypted, since a
 * client registration at a provider holds a secret.
 */
export function createSealedSettings(
  authenticatorName: string,
  deps: { readonly settings: SettingStore; readonly sealer: Sealer },
): SettingStore {
  const { settings, sealer } = deps;
  const keyOf = (key: string) => `authenticator:${authenticatorName}:${key}`;
  return {
    async find(key) {
      const sealed = await settings.find(keyOf(key));
      return sealed && sealer.open(sealed, keyOf(key));
    },
    set: (key, value) => settings.set(keyOf(key), sealer.seal(value, keyOf(key))),
  };
}
