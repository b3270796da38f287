import { expect, test } from 'vitest';
import { describeEachDatabase } from '../../../test/support/databases.ts';
import { createSettingStore } from './setting-store.ts';

describeEachDatabase('the setting store', (open) => {
  test('finds the value that was set last', async () => {
    const settings = createSettingStore(await open());
    expect(await settings.find('a')).toBeUndefined();
    await settings.set('a', '1');
    await settings.set('a', '2');
    await settings.set('b', '3');
    expect(await settings.find('a')).toBe('2');
    expect(await settings.take('a', '1')).toBe(false);
    const taken = await Promise.all([1, 2, 3].map(() => settings.take('a', '2')));
    expect(taken.filter(Boolean)).toHaveLength(1);
    expect(await settings.find('a')).toBeUndefined();
    expect(await settings.find('b')).toBe('3');
  });

  test('gives all who make a value at once the same one', async () => {
    const settings = createSettingStore(await open());
    const kept = await Promise.all(['x', 'y', 'z'].map((value) => settings.keep('id', value)));
    expect(new Set(kept).size).toBe(1);
    expect(await settings.keep('id', 'later')).toBe(kept[0]);
  });
});
