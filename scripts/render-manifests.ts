/** Writes `deploy/kubernetes/`, which is the chart with its default values. Run with `npm run manifests`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { plainManifests } from './plain-manifests.ts';

for (const [path, text] of await plainManifests()) {
  writeFileSync(join(import.meta.dirname, '..', path), text);
}
