/** Prints every text of the source as JSON: its key, and where it stands. Run with `npm run texts`. */
import { textsOfSource } from './texts/extract.ts';

const texts = [...textsOfSource()].sort(([one], [other]) => (one < other ? -1 : 1));
process.stdout.write(`${JSON.stringify(Object.fromEntries(texts), undefined, 2)}\n`);
