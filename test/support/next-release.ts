/**
 * Makes the program that it is loaded before (`node --import`) the next release of it: one whose database has a column
 * more.
 */
import { registerHooks } from 'node:module';

const list = /(\bconst migrations\b[^=;]*= \[[\s\S]*?),?\n\];/;
const step = `{
  name: 'next-release',
  async up(transaction) {
    await transaction.schema.alterTable('users').addColumn('colour', 'text').execute();
  },
}`;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    const source = url.startsWith('file:') ? String(loaded.source) : '';
    return list.test(source)
      ? { ...loaded, source: source.replace(list, `$1, ${step}\n];`) }
      : loaded;
  },
});
