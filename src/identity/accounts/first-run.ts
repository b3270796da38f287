import type { SettingStore } from '../../platform/store/setting-store.ts';

/** What the first administrator is shown until it is dismissed, and no one else ever. */
export interface FirstRun {
  begin(userId: string): Promise<void>;
  isShownTo(user: { readonly id: string; readonly isAdmin: boolean }): Promise<boolean>;
  /** For good; of no effect for anyone else. */
  dismiss(userId: string): Promise<void>;
}

const settingKey = 'first-run-user-id';

export function createFirstRun(settings: SettingStore): FirstRun {
  return {
    begin: (userId) => settings.set(settingKey, userId),
    isShownTo: async ({ id, isAdmin }) => isAdmin && (await settings.find(settingKey)) === id,
    async dismiss(userId) {
      await settings.take(settingKey, userId);
    },
  };
}
