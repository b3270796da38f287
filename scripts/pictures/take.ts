/** Takes the pictures of `docs/pictures/` from a hub that it starts. Run with `npm run pictures`. */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startChromium } from '../../test/support/chromium.ts';
import { createCamera } from './camera.ts';
import { playScenes } from './scenes.ts';
import { startWorld } from './world.ts';

const { values } = parseArgs({
  options: {
    folder: { type: 'string', default: join(import.meta.dirname, '../../docs/pictures') },
    language: { type: 'string', default: 'en' },
    /** How long servers and services are visited before their plots are shown. */
    seconds: { type: 'string', default: '240' },
  },
});
await using world = await startWorld();
const browser = await startChromium({ hosts: { 'hub.example.org': world.port } });
await using camera = createCamera(browser, values);
try {
  await playScenes(world, camera, { visitSeconds: Number(values.seconds) });
} finally {
  await browser.close();
}
